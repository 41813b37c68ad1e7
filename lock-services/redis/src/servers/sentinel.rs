use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{Client, RedisResult};

use super::{
    address::{Access, Address},
    link::dial,
    service_url::ServiceUrl,
};
use crate::error::translate;
use lock_core::{Error, ErrorKind};

/// The sentinels that watch over a primary, and the login to the server that they name.
#[derive(Debug)]
pub(super) struct Sentinels {
    addresses: Vec<Address>,
    primary_name: String,
    sentinels: Access,
    servers: Access,
    timeout: Duration,
}

impl Sentinels {
    pub(super) fn new(url: &ServiceUrl) -> Self {
        Self {
            addresses: url.addresses.clone(),
            primary_name: url.primary_name.clone(),
            sentinels: url.sentinels.clone(),
            servers: url.servers.clone(),
            timeout: url.response_timeout,
        }
    }

    /// The server that most sentinels name as the primary. All sentinels are asked at once, so a
    /// sentinel that hangs delays no caller, and a sentinel that was cut off from the others does
    /// not decide.
    pub(super) async fn primary(&self) -> Result<Client, Error> {
        let mut answers: FuturesUnordered<_> = self
            .addresses
            .iter()
            .map(|sentinel| self.ask(sentinel))
            .collect();
        let majority = self.addresses.len() / 2 + 1;
        let mut votes = BTreeMap::<Address, usize>::new();
        let mut failure = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Some(primary)) => {
                    let votes = votes.entry(primary).or_default();
                    *votes += 1;
                    if *votes >= majority {
                        break;
                    }
                }
                Ok(None) => failure = Some(self.unknown()),
                Err(error) => failure = failure.or(Some(self.unheard(error))),
            }
        }
        let Some((primary, _)) = votes.into_iter().max_by_key(|(_, votes)| *votes) else {
            return Err(failure.unwrap_or_else(|| self.unknown()));
        };
        self.servers
            .client(&primary)
            .map_err(|error| translate(error).outcome_not_applied())
    }

    async fn ask(&self, sentinel: &Address) -> RedisResult<Option<Address>> {
        let mut commands = dial(&self.sentinels.client(sentinel)?, self.timeout).await?;
        let mut command = redis::cmd("SENTINEL");
        command
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.primary_name);
        let named: Option<(String, u16)> = command.query_async(&mut commands).await?;
        Ok(named.and_then(|(host, port)| Address::of(&host, port, sentinel)))
    }

    fn unknown(&self) -> Error {
        let why = format!(
            "the sentinels know no primary named {:?}: the name is the path of the URL",
            self.primary_name,
        );
        Error::not_applied(ErrorKind::Refused).because(why)
    }

    fn unheard(&self, error: redis::RedisError) -> Error {
        let translated = translate(error).outcome_not_applied();
        if translated.kind() == ErrorKind::Unavailable {
            return translated.because(format!(
                "none of {} sentinels answers",
                self.addresses.len(),
            ));
        }
        translated.because(
            "the sentinels refuse: sentinel_user and sentinel_password are parameters of the URL",
        )
    }
}
