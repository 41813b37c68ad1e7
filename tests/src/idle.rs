//! A user must not notice that an idle connection was closed.

use crate::observer::until;
use lock_core::{
    Attempt, Error, Extension, ForceReleased, LockManager, Released, Ttl, backend::Renewed,
};

const TTL: Ttl = Ttl::secs(10);

/// Does everything that a manager can be asked for, each time after `cut` has closed the
/// connections to a server that is up.
///
/// # Errors
/// The first error.
///
/// # Panics
/// If a call has another result than without the cut.
pub async fn nothing_is_noticed(locks: &LockManager, cut: impl AsyncFn()) -> Result<(), Error> {
    let acquire = |name: &str| {
        let name = format!("idle:{name}:{:016x}", rand::random::<u64>());
        locks.acquire(name).ttl(TTL)
    };

    let guard = acquire("guard").await?;
    cut().await;
    assert_eq!(guard.release().await?, Released::Released);
    cut().await;
    let guard = acquire("after").await?;
    cut().await;
    let seen = locks.inspect(guard.resource()).await?;
    assert_eq!(seen.holder.map(|holder| holder.token), Some(guard.token()));
    cut().await;
    let free = acquire("free").try_acquire().await?;
    assert!(matches!(free, Attempt::Granted(_)));

    // The release of a lost lease counts as none, whether or not the connection is cut.
    for is_cut in [false, true] {
        let short = acquire("lost").ttl(Ttl::secs(2)).renew(false).await?;
        short.lost().await;
        // The lock service counts from a little later.
        until("it has ended", async || {
            let seen = locks.inspect(short.resource()).await;
            seen.is_ok_and(|seen| seen.holder.is_none())
        })
        .await;
        if is_cut {
            cut().await;
        }
        assert_eq!(short.release().await?, Released::NotHolder, "cut: {is_cut}");
    }

    let Attempt::Granted(lease) = acquire("detached").detached().await? else {
        panic!("it is free")
    };
    cut().await;
    let renewed = locks.renew(&lease.sequencer, TTL).await?;
    assert!(matches!(renewed, Renewed::Renewed(_)));
    cut().await;
    let released = locks.release(&lease.sequencer).await?;
    assert_eq!(released, Released::Released);

    if locks.capabilities().has(Extension::List) {
        cut().await;
        let listed = locks.list().await?;
        assert!(listed.iter().any(|it| it.resource == *guard.resource()));
    }
    if locks.capabilities().has(Extension::ForceRelease) {
        cut().await;
        let forced = locks.force_release(guard.resource()).await?;
        let ForceReleased::Ended { holder, revocation } = forced else {
            panic!("it is held")
        };
        assert_eq!(holder.token, guard.token());
        assert!(revocation > guard.token());
    }
    Ok(())
}
