use lock_core::ResourceName;

use super::{
    Hand,
    act::{Director, Scene, lost},
    story,
};
use crate::api::account_resource;
use crate::events::{Act, Story, What};
use palisade_cli::Failure;

const OPENING_BALANCE: i64 = 100;

impl Director {
    /// Plays one act and records its verdict.
    ///
    /// # Errors
    /// If the act cannot be played to its end. An unexpected result is not an error here.
    pub(crate) async fn play(&self, run: u32, act: Act, hand: Hand) -> Result<(), Failure> {
        let account = format!("{:016x}-{run}-{act}", self.nonce);
        let named = |resource: String| {
            ResourceName::try_from(resource).map_err(|error| Failure::NotAsTold(format!("{error}")))
        };
        let resource = named(self.story.resource(&account))?;
        let acknowledged = match self.story {
            Story::Deposits => OPENING_BALANCE,
            // The number of times that the job was done.
            Story::Jobs => 0,
        };
        // This comes first, because only a resource on stage has an unfenced twin. The clients read
        // the account, whatever they lock.
        for staged in [resource.clone(), named(account_resource(&account))?] {
            self.recorder.stage(staged, run, act, self.story);
        }
        let opened = self
            .client
            .write(Act::Unfenced, &account, acknowledged, None)
            .await;
        opened.map_err(|error| lost("cannot open an account", &error))?;

        Scene {
            director: self,
            act,
            account,
            resource,
            acknowledged,
        }
        .play(hand)
        .await
    }
}

impl Scene<'_> {
    async fn play(mut self, hand: Hand) -> Result<(), Failure> {
        let course = story::play(&mut self, hand).await?;
        let (found, expected) = (self.balance().await?, self.acknowledged);
        let lost_update = found != expected;
        let as_told = course.as_told(self.act, lost_update);
        self.note(
            None,
            What::Verdict {
                expected,
                found,
                lost_update,
                as_told,
            },
        );
        Ok(())
    }
}
