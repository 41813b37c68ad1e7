use super::{Course, answer, is_refusal, ready};
use crate::{
    events::{Act, ClientName, What},
    failure::Failure,
    scenario::{
        act::{DEPOSIT_OF_CLIENT_1, DEPOSIT_OF_CLIENT_2, Scene},
        client_process::ClientProcess,
    },
    worker::{Part, Step},
};

/// A fence tells holders apart, but not two processes of the same holder. For that, each write has
/// a number: the second write with the same number is refused.
pub(super) async fn play(scene: &mut Scene<'_>) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One, Part::Lend)?;
    let (token, header) = one.until(acquired).await?;
    one.until(ready).await?;
    scene.note(Some(ClientName::Two), What::Shared { token });
    let mut two = scene.start_with_token(ClientName::Two, Part::Share, header)?;
    two.until(ready).await?;
    let (first, second) = tokio::try_join!(deposit(&mut one), deposit(&mut two))?;
    // Only now does it give the lease back.
    one.go().await?;
    two.finish().await?;
    one.finish().await?;
    let deposits = [(first, DEPOSIT_OF_CLIENT_1), (second, DEPOSIT_OF_CLIENT_2)];
    let mut out_of_order = 0;
    for (answers, deposit) in deposits {
        for answer in answers {
            scene.acknowledge(&answer, deposit);
            out_of_order += u32::from(is_refusal(&answer, 412, "sequence-stale"));
        }
    }
    Ok(Course {
        went: out_of_order == u32::from(scene.act == Act::Fenced),
        loses: Some(true),
    })
}

fn acquired(step: Step) -> Option<(lock_core::FencingToken, String)> {
    match step {
        Step::Acquired { token, header } => Some((token, header)),
        _ => None,
    }
}

/// Writes, and once more with a fresh read if that was refused. Returns all answers.
async fn deposit(client: &mut ClientProcess) -> Result<Vec<Step>, Failure> {
    client.go().await?;
    let mut answers = vec![client.until(answer).await?];
    if let Some(Step::Refused { .. }) = answers.first() {
        client.until(ready).await?;
        client.go().await?;
        answers.push(client.until(answer).await?);
    }
    Ok(answers)
}
