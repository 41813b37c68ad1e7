use super::*;
use crate::{FencingToken, Holder, Issuer, Released, Sequencer, Ttl};

const NOW: Moment = Moment::from_origin(Duration::from_secs(100));
const UNIX: Duration = Duration::from_secs(1_790_000_000);

fn table(first: u64) -> Table {
    Table::new(InitialToken::At(FencingToken::new(first).unwrap()))
}

fn request(wait: Wait) -> AcquireRequest {
    let resource = ResourceName::new("r").unwrap();
    let mut request =
        AcquireRequest::new(AttemptRef::new(resource, Holder::random()), Ttl::secs(10));
    request.wait = wait;
    request
}

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    Sequencer::new(Issuer::new("memory").unwrap(), resource, token, holder)
}

fn granted(answer: Result<Answer, Refusal>) -> FencingToken {
    match answer.unwrap() {
        Answer::Granted(grant) => grant.token,
        answer => panic!("not granted: {answer:?}"),
    }
}

fn queued(answer: Result<Answer, Refusal>) -> oneshot::Receiver<Result<Grant, Refusal>> {
    match answer.unwrap() {
        Answer::Queued(waiting) => waiting.grant,
        answer => panic!("not queued: {answer:?}"),
    }
}

#[test]
fn nothing_is_kept_of_an_idle_resource() {
    let mut table = table(1);
    let first = request(Wait::Never);
    granted(table.acquire(&first, NOW, UNIX));
    let waiting = queued(table.acquire(&request(Wait::Forever), NOW, UNIX));
    drop(waiting);
    table.cancel(&first.attempt, NOW);
    assert!(table.resources.is_empty());
}

/// Catches: a counter that overflows, or leaves who waits without an answer.
#[test]
fn the_last_token_is_issued_and_none_after_it() {
    let mut table = table(FencingToken::MAX.get());
    let last = request(Wait::Never);
    assert_eq!(granted(table.acquire(&last, NOW, UNIX)), FencingToken::MAX);
    let mut waiting = queued(table.acquire(&request(Wait::Forever), NOW, UNIX));
    table.cancel(&last.attempt, NOW);
    assert_eq!(waiting.try_recv().unwrap(), Err(Refusal::TokensExhausted));
    let answer = table.acquire(&request(Wait::Never), NOW, UNIX);
    assert_eq!(answer.unwrap_err(), Refusal::TokensExhausted);
    assert!(table.resources.is_empty());
}

/// Catches: two attempts of one acquisition in line get two tokens, or the first to go ends the
/// lease.
#[test]
fn attempts_of_one_acquisition_wait_together_and_share_the_grant() {
    let mut table = table(1);
    let holder = request(Wait::Never);
    granted(table.acquire(&holder, NOW, UNIX));
    let early = request(Wait::Forever);
    let mut first = queued(table.acquire(&early, NOW, UNIX));
    let mut other = queued(table.acquire(&request(Wait::Forever), NOW, UNIX));
    let mut again = early.clone();
    again.attempt = AttemptRef::new(early.attempt.resource.clone(), early.attempt.holder);
    let mut second = queued(table.acquire(&again, NOW, UNIX));
    table.cancel(&holder.attempt, NOW);
    assert_eq!(first.try_recv().unwrap().unwrap().token.get(), 2);
    assert_eq!(second.try_recv().unwrap().unwrap().token.get(), 2);
    assert!(other.try_recv().is_err());
    table.cancel(&early.attempt, NOW);
    assert!(
        other.try_recv().is_err(),
        "the second attempt still relies on the lease"
    );
    table.cancel(&again.attempt, NOW);
    assert_eq!(other.try_recv().unwrap().unwrap().token.get(), 3);
}

/// Catches: tombstones that are looked up by the holder alone.
#[test]
fn an_earlier_lease_of_the_same_holder_was_lost_even_if_a_later_one_was_released() {
    let mut table = table(1);
    let first = request(Wait::Never);
    let lost = sequencer(&first, granted(table.acquire(&first, NOW, UNIX)));
    table.cancel(&first.attempt, NOW);
    let mut second = first.clone();
    second.attempt = AttemptRef::new(first.attempt.resource.clone(), first.attempt.holder);
    let lease = sequencer(&second, granted(table.acquire(&second, NOW, UNIX)));
    // The second time as for an answer that was lost.
    for _ in 0..2 {
        assert_eq!(table.release(&lease, NOW), Released::Released);
    }
    assert_eq!(table.release(&lost, NOW), Released::NotHolder);
}
