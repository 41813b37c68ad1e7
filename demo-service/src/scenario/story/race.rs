use super::{Course, answer, pause::settle, ready};
use crate::{
    events::ClientName,
    failure::Failure,
    scenario::act::{DEPOSIT_OF_CLIENT_2, Scene},
    worker::Part,
};

/// The operating system decides who comes first. But one of the two deposits is always lost without
/// fencing, and with it, it is always the old holder who is refused.
pub(super) async fn play(scene: &mut Scene<'_>) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One, Part::Deposit)?;
    one.until(ready).await?;
    let stopped = scene.pause(&one).await?;
    one.go().await?;
    let mut two = scene.start(ClientName::Two, Part::Deposit)?;
    two.until(ready).await?;
    // Both have read the same balance, and both have just seen that their lease is live.
    scene.resume(&one, stopped)?;
    two.go().await?;
    let second = async {
        let answer = two.until(answer).await?;
        two.finish().await?;
        Ok(answer)
    };
    let (second, first) = tokio::try_join!(second, one.until(answer))?;
    let second_as_told = scene.acknowledge(&second, DEPOSIT_OF_CLIENT_2);
    let first_as_told = settle(scene, one, &first).await?;
    Ok(Course {
        went: second_as_told && first_as_told,
        loses: Some(true),
    })
}
