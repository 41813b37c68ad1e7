use super::{Course, answer, is_refusal, ready};
use crate::{
    events::{Act, ClientName, Forgery, What},
    failure::Failure,
    scenario::act::{DEPOSIT_OF_CLIENT_1, Scene},
    worker::{Part, Step},
};

/// Client 1 makes its deposit. Then client 2 empties the account, with any token it can think of:
/// it has a genuine one, for an account of its own.
pub(super) async fn play(scene: &mut Scene<'_>) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One, Part::Deposit)?;
    one.until(ready).await?;
    one.go().await?;
    let deposited = one.until(answer).await?;
    one.finish().await?;
    let mut went = scene.acknowledge(&deposited, DEPOSIT_OF_CLIENT_1);

    let mut two = scene.start(ClientName::Two, Part::Forge)?;
    for _ in Forgery::ALL {
        let forgery = two.until(forged).await?;
        scene.note(Some(ClientName::Two), What::Forged { forgery });
        two.go().await?;
        let answer = two.until(answer).await?;
        went &= match scene.act {
            Act::Unfenced => matches!(answer, Step::Written { .. }),
            // Refused for its signature. If nothing is signed, it is refused because the store has
            // not heard of it.
            Act::Fenced => {
                is_refusal(&answer, 403, "token-not-accepted")
                    || is_refusal(&answer, 412, "token-not-claimed")
            }
        };
    }
    two.finish().await?;
    Ok(Course {
        went,
        loses: Some(true),
    })
}

fn forged(step: Step) -> Option<Forgery> {
    match step {
        Step::Forged { forgery } => Some(forgery),
        _ => None,
    }
}
