use futures_util::FutureExt;

use super::*;
use crate::{
    ErrorKind, FencingToken, Holder, Issuer, Released, Sequencer, TokioRuntime, Ttl,
    acquisition::Wake,
};

const NOW: Moment = Moment::from_origin(Duration::from_secs(100));
const UNIX: Duration = Duration::from_secs(1_790_000_000);

fn table(first: u64) -> Table {
    Table::new(InitialToken::At(FencingToken::new(first).unwrap()))
}

fn request() -> AcquireRequest {
    let resource = ResourceName::new("r").unwrap();
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, resource, Holder::random()),
        Ttl::secs(10),
    )
}

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    Sequencer::new(Issuer::new("memory").unwrap(), resource, token, holder)
}

/// Looks once, without a place in the queue.
fn look(table: &mut Table, request: &AcquireRequest) -> Result<Reply, Error> {
    table.acquire(request, None, NOW, UNIX)
}

fn granted(reply: Result<Reply, Error>) -> FencingToken {
    match reply.unwrap() {
        Reply::Granted(grant) => grant.token,
        reply => panic!("not granted: {reply:?}"),
    }
}

fn queued(table: &mut Table, request: &AcquireRequest) -> Arc<WakeUps> {
    let wake_ups = Arc::default();
    let reply = table.acquire(request, Some(&wake_ups), NOW, UNIX).unwrap();
    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    wake_ups
}

/// The token that a waiter was woken with.
fn token(wake_ups: &WakeUps) -> Option<u64> {
    match wake_ups.next().now_or_never()? {
        Wake::Granted(grant) => Some(grant.token.get()),
        _ => None,
    }
}

#[test]
fn nothing_is_kept_of_an_idle_resource() {
    let mut table = table(1);
    let first = request();
    granted(look(&mut table, &first));
    let waiting = queued(&mut table, &request());
    drop(waiting);
    table.cancel(&first.attempt, NOW);
    assert!(table.resources.is_empty());
}

/// Catches: a counter that overflows, or leaves a waiter without an answer.
#[test]
fn the_last_token_is_issued_and_none_after_it() {
    let mut table = table(FencingToken::MAX.get());
    let last = request();
    assert_eq!(granted(look(&mut table, &last)), FencingToken::MAX);
    let waiting = queued(&mut table, &request());
    table.cancel(&last.attempt, NOW);
    assert_eq!(waiting.next().now_or_never(), Some(Wake::Look));
    let answer = look(&mut table, &request());
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::TokensExhausted);
    assert!(table.resources.is_empty());
}

/// Catches: two waiting attempts of one acquisition get two tokens, or the first attempt that gives
/// up ends the lease.
#[test]
fn attempts_of_one_acquisition_wait_together_and_share_the_grant() {
    let mut table = table(1);
    let holder = request();
    granted(look(&mut table, &holder));
    let early = request();
    let first = queued(&mut table, &early);
    let other = queued(&mut table, &request());
    let mut again = early.clone();
    again.attempt = AttemptRef::new(
        &TokioRuntime,
        early.attempt.resource.clone(),
        early.attempt.holder,
    );
    let second = queued(&mut table, &again);
    table.cancel(&holder.attempt, NOW);
    assert_eq!(token(&first), Some(2));
    assert_eq!(token(&second), Some(2));
    assert_eq!(token(&other), None);
    table.cancel(&early.attempt, NOW);
    assert_eq!(
        token(&other),
        None,
        "the second attempt relies on the lease"
    );
    table.cancel(&again.attempt, NOW);
    assert_eq!(token(&other), Some(3));
}

/// Catches: tombstones that are looked up by the holder alone.
#[test]
fn an_earlier_lease_of_the_same_holder_was_lost_even_if_a_later_one_was_released() {
    let mut table = table(1);
    let first = request();
    let lost = sequencer(&first, granted(look(&mut table, &first)));
    table.cancel(&first.attempt, NOW);
    let mut second = first.clone();
    second.attempt = AttemptRef::new(
        &TokioRuntime,
        first.attempt.resource.clone(),
        first.attempt.holder,
    );
    let lease = sequencer(&second, granted(look(&mut table, &second)));
    // The second release is a copy, as after a lost answer.
    for _ in 0..2 {
        assert_eq!(table.release(&lease, NOW), Released::Released);
    }
    assert_eq!(table.release(&lost, NOW), Released::NotHolder);
}
