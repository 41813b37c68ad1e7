//! Cases that the conformance cases of the contract leave out.

use lock_core::{
    ErrorKind, FencingToken, InitialToken,
    backend::{LockBackend as _, RenewRequest, Renewed, Reply, Runtime as _, Wake},
};

use super::*;

/// A waiter has a place behind a lease. Returns its client, its request and that lease.
async fn in_line(rig: &Rig) -> (SimBackend, AcquireRequest, (AcquireRequest, Grant)) {
    let (holder, waiter) = (rig.client(10), rig.client(11));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let reply = rig.send(&waiter.requests(&second), QUEUE).await;
    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    (waiter, second, (first, grant))
}

/// Catches: a waiter that finds the end of a lease itself, and gets an offer instead of the lease.
#[tokio::test]
async fn the_first_waiter_gets_the_lease_in_the_answer_to_its_look() {
    let rig = Rig::new(Variant::Offers);
    let (waiter, request, _) = in_line(&rig).await;
    rig.clock.advance(TTL.get());
    let reply = rig.send(&waiter.requests(&request), QUEUE).await;
    assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    let grants = rig.changes().into_iter().filter_map(|change| match change {
        Change::Granted { way, .. } => Some(way),
        _ => None,
    });
    assert!(grants.eq([Way::Answer; 2]));
    assert_eq!(rig.left(), (1, 0));
}

/// Catches: a place that stays when an offer is ended by force.
#[tokio::test]
async fn an_offer_that_is_ended_by_force_has_no_place() {
    let rig = Rig::new(Variant::Offers);
    let (waiter, request, (first, grant)) = in_line(&rig).await;
    rig.release(&waiter, &first, grant).await;
    let offer = rig.service.left_behind().leases.remove(0);
    assert_eq!((rig.left(), offer.is_offer), ((1, 1), true));
    let forced = waiter.force_release(&request.attempt.resource, offer.token);
    rig.run(forced).await.unwrap();
    assert_eq!(rig.left(), (0, 0));
}

/// Catches: a confirmed lease that still counts as an offer.
#[tokio::test]
async fn a_confirmed_lease_is_like_any_other() {
    let rig = Rig::new(Variant::Offers);
    let (waiter, request, (first, grant)) = in_line(&rig).await;
    rig.release(&waiter, &first, grant).await;
    let requests = waiter.requests(&request);
    let Reply::Offered(offer) = rig.send(&requests, QUEUE).await else {
        panic!("it is offered")
    };
    rig.send(&requests, Request::Confirm(offer)).await;
    assert_eq!(rig.left(), (1, 0));
    let renewal = RenewRequest::new(lease(&request, offer), TTL);
    let renewed = rig.run(waiter.renew(&[renewal])).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Renewed(_))), "{renewed:?}");
    rig.clock.advance(TTL.get());
    let error = rig.run(requests.send(QUEUE)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released);
}

/// Catches: a place that lapses although its owner looks.
#[tokio::test]
async fn a_place_is_kept_for_as_long_as_its_owner_looks() {
    let rig = Rig::new(Variant::Polls);
    let (waiter, request, (first, grant)) = in_line(&rig).await;
    let most = Settings::new(Variant::Polls).place_ttl - millis(1);
    for _ in 0..2 {
        rig.clock.advance(most);
        let reply = rig.send(&waiter.requests(&request), QUEUE).await;
        assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    }
    let changes = rig.changes();
    let places = changes
        .iter()
        .filter(|change| matches!(change, Change::Queued { .. }));
    assert_eq!(places.count(), 1, "{changes:?}");
    rig.release(&waiter, &first, grant).await;
    rig.clock.advance(most);
    let left = millis(1);
    let newcomer = rig.request();
    let reply = rig.send(&waiter.requests(&newcomer), LOOK).await;
    assert_eq!(reply, Reply::Held { left });
}

/// Catches: one of several leases that is granted before the tokens are used up.
#[tokio::test]
async fn several_leases_need_several_tokens() {
    let mut settings = Settings::new(Variant::Pushes);
    settings.initial = InitialToken::At(FencingToken::MAX);
    let rig = Rig::with(settings);
    let client = rig.client(0);
    let one = rig.request();
    let mut other = one.clone();
    other.attempt.resource = ResourceName::new("other").unwrap();
    let both = rig
        .run(client.acquire_together(&[one.clone(), other]))
        .await;
    assert_eq!(both.unwrap_err().kind(), ErrorKind::TokensExhausted);
    assert_eq!(rig.left(), (0, 0));
    assert_eq!(rig.grant(&client, &one).await.token, FencingToken::MAX);
}

/// Catches: a cancel after which a repeated release of a hold gets another answer.
#[tokio::test]
async fn a_hold_that_was_given_back_stays_given_back() {
    let rig = Rig::new(Variant::Pushes);
    let (client, request) = (rig.client(0), rig.request());
    let held = lease(&request, rig.grant(&client, &request).await);
    let id = request.attempt.id;
    for _ in 0..2 {
        let released = rig.run(client.release_hold(&held, id)).await;
        assert_eq!(released.unwrap(), Released::Released);
        rig.run(client.cancel(&request.attempt)).await.unwrap();
    }
}

/// Catches: a lease that is longer for its holder because the server's clock jumps.
#[tokio::test]
async fn no_jump_of_the_servers_clock_makes_a_lease_longer_than_asked_for() {
    let rig = Rig::new(Variant::Pushes);
    let (waiter, request, (first, grant)) = in_line(&rig).await;
    rig.service.step_clock_forward(TTL.get() / 2);
    rig.release(&waiter, &first, grant).await;
    let requests = waiter.requests(&request);
    rig.service.step_clock_back(TTL.get());
    let Reply::Granted(found) = rig.send(&requests, QUEUE).await else {
        panic!("it is granted")
    };
    assert_eq!(found.lease.deadline(), rig.clock.now() + TTL.get());

    let rig = Rig::new(Variant::Pushes);
    let (waiter, request) = (rig.client(11), rig.waiting());
    let first = rig.request();
    let grant = rig.grant(&rig.client(10), &first).await;
    let requests = waiter.requests(&request);
    rig.send(&requests, QUEUE).await;
    rig.service.step_clock_forward(TTL.get() / 2);
    rig.release(&waiter, &first, grant).await;
    let Wake::Granted(pushed) = rig.run(requests.woken()).await else {
        panic!("it is granted")
    };
    assert_eq!(pushed.lease.deadline(), rig.clock.now() + TTL.get());
}

/// Catches: an acquisition that counts as often as it has attempts.
#[tokio::test]
async fn two_attempts_that_wait_are_one_acquisition() {
    let rig = Rig::new(Variant::Pushes);
    let (waiter, mut request, _) = in_line(&rig).await;
    request.attempt.id = rig.request().attempt.id;
    rig.send(&waiter.requests(&request), QUEUE).await;
    assert_eq!(rig.left(), (1, 2));
    let inspection = rig.run(waiter.inspect(&request.attempt.resource)).await;
    assert_eq!(inspection.unwrap().waiters, Some(1));
}

/// Catches: a counter that begins at another time than the server's.
#[tokio::test]
async fn tokens_begin_at_the_wall_clock_of_the_server() {
    let rig = Rig::new(Variant::Pushes);
    rig.service.step_clock_back(TTL.get());
    let grant = rig.grant(&rig.client(0), &rig.request()).await;
    let begin = InitialToken::clock_token(rig.clock.unix_time() - TTL.get());
    assert_eq!(grant.token.get(), begin);
}
