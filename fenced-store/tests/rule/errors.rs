//! The texts of errors, and the secrets that they must not show.

use std::error::Error;

use fenced_store::FenceError;
use lock_core::Sequencer;

use super::{SqlHarness, fresh, grant, grant_by};

/// The holder is a secret: anyone who knows it can pose as the holder.
pub(crate) async fn no_secret_in_errors_or_tables<H: SqlHarness>() {
    let world: H = fresh().await;
    let mark = grant("account:42", 33);
    let stale = grant("account:42", 32);
    let twin = grant("account:42", 33);
    let early = grant("account:42", 34);
    let foreign = grant_by("etcd", "account:42", 35);
    world.store().claim(&mark).await.unwrap();

    let errors = [
        world.store().claim(&stale).await.unwrap_err(),
        world.store().begin(&stale).await.unwrap_err(),
        world.store().claim(&twin).await.unwrap_err(),
        world.store().begin(&twin).await.unwrap_err(),
        world.store().begin(&early).await.unwrap_err(),
        world.store().claim(&foreign).await.unwrap_err(),
        world.store().begin(&foreign).await.unwrap_err(),
    ];
    let mut texts: Vec<String> = errors.iter().map(everything_about).collect();
    texts.push(world.dump().await);
    texts.push(format!(
        "{:?}",
        world.store().high_water(mark.resource()).await.unwrap()
    ));
    texts.push(format!("{:?}", world.store().begin(&mark).await.unwrap()));

    for text in texts {
        for grant in [&mark, &stale, &twin, &early, &foreign] {
            let secret = grant.holder().expose();
            assert!(!text.contains(&secret), "a secret in {text}");
        }
    }
    for error in errors {
        assert!(
            !everything_about(&error).contains(&digest(&mark)),
            "{error:?}"
        );
    }
}

fn digest(grant: &Sequencer) -> String {
    grant.holder().digest()
}

fn everything_about(error: &FenceError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    text
}
