use super::{Course, answer, ready};
use crate::{
    events::ClientName,
    failure::Failure,
    scenario::{
        act::{DEPOSIT_OF_CLIENT_2, Scene},
        client_process::ClientProcess,
    },
    worker::Part,
};

pub(super) async fn play(scene: &mut Scene<'_>) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One, Part::Deposit)?;
    one.until(ready).await?;
    go_on(scene, one).await
}

/// Client 1 dies at this point, and nobody gives its lease back. Client 2 waits for its end.
pub(super) async fn go_on(scene: &mut Scene<'_>, one: ClientProcess) -> Result<Course, Failure> {
    scene.kill(one).await?;
    let mut two = scene.start(ClientName::Two, Part::Deposit)?;
    two.until(ready).await?;
    two.go().await?;
    let written = two.until(answer).await?;
    two.finish().await?;
    Ok(Course {
        went: scene.acknowledge(&written, DEPOSIT_OF_CLIENT_2),
        loses: Some(false),
    })
}
