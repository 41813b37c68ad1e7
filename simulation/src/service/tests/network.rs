use lock_core::{
    Attempt, Error, ErrorKind, Outcome, Released,
    backend::{LockBackend as _, LockBackendExt as _, Reply, Requests as _, Runtime as _, Wake},
};

use super::*;
use crate::service::MessageId;

/// The moment of an event, in milliseconds of the clock.
async fn grants_after(rig: &Rig, client: &SimBackend, request: &AcquireRequest) -> u128 {
    let before = rig.clock.now();
    rig.grant(client, request).await;
    rig.clock.now().since(before).as_millis()
}

/// Catches: a request that is dropped with its caller, so that no late grant is ever seen.
#[tokio::test]
async fn a_request_arrives_although_its_caller_has_gone() {
    let rig = Rig::new(Variant::Pushes);
    rig.fate((0, Leg::Request, 0), delayed(millis(50)));
    let (client, request) = (rig.client(0), rig.request());
    {
        let mut acquire = pin!(client.acquire(&request));
        tokio::select! {
            biased;
            _ = &mut acquire => panic!("it takes 50 ms"),
            () = settle() => {}
        }
    }
    assert_eq!((rig.left(), rig.service.under_way()), ((0, 0), 1));
    rig.pass(millis(49)).await;
    assert_eq!(rig.left(), (0, 0));
    rig.pass(millis(1)).await;
    assert_eq!((rig.left(), rig.service.under_way()), ((1, 0), 0));
}

/// Catches: a lost request and a lost answer that a client can tell apart, or a lost request that
/// takes effect.
#[tokio::test]
async fn a_lost_request_and_a_lost_answer_look_alike() {
    let answer_after = async |leg| {
        let rig = Rig::new(Variant::Pushes);
        rig.fate((0, leg, 0), LOST);
        let (client, request) = (rig.client(0), rig.request());
        let (before, requests) = (rig.clock.now(), client.requests(&request));
        let error = rig.run(requests.send(LOOK)).await.unwrap_err();
        let took = rig.clock.now().since(before);
        (error.kind(), error.outcome(), took, rig.left())
    };
    let (kind, outcome) = (ErrorKind::Unavailable, Outcome::Unknown);
    let timeout = Settings::new(Variant::Pushes).request_timeout;
    let lost = answer_after(Leg::Request).await;
    assert_eq!(lost, (kind, outcome, timeout, (0, 0)));
    let unheard = answer_after(Leg::Answer).await;
    assert_eq!(unheard, (kind, outcome, timeout, (1, 0)));
}

/// Catches: delays that are not those of the script, on either way.
#[tokio::test]
async fn a_grant_takes_as_long_as_its_messages() {
    let rig = Rig::new(Variant::Pushes);
    rig.fate((0, Leg::Request, 0), delayed(millis(30)));
    rig.fate((0, Leg::Answer, 0), delayed(millis(4)));
    let (client, request) = (rig.client(0), rig.request());
    assert_eq!(grants_after(&rig, &client, &request).await, 34);
    // Another client has numbers of its own.
    let (other, request) = (rig.client(1), rig.request());
    let answer = rig.run(other.acquire(&request)).await.unwrap();
    let Attempt::Held { retry_after } = answer else {
        panic!("it is held")
    };
    assert_eq!(retry_after, TTL.get() - millis(4));
}

/// Catches: a copy that does not arrive, and a copy that the attempt does not know of, so that
/// its release leaves no tombstone.
#[tokio::test]
async fn a_copy_of_an_answered_look_is_announced_and_arrives() {
    for (tombstone, left) in [(true, 0), (false, 1)] {
        let rig = Rig::new(Variant::Pushes);
        rig.fate((0, Leg::Request, 0), copied(millis(80)));
        let (client, request) = (rig.client(0), rig.request());
        let requests = client.requests(&request);
        let reply = rig.send(&requests, LOOK).await;
        let Reply::Granted(grant) = reply else {
            panic!("{reply:?}")
        };
        assert!(requests.has_copied());
        let lease = lease(&request, grant);
        let released = rig.run(client.release(&lease, tombstone)).await;
        assert_eq!(released.unwrap(), Released::Released);
        assert_eq!(rig.left(), (0, 0));
        rig.pass(millis(80)).await;
        assert_eq!(rig.left(), (left, 0), "tombstone: {tombstone}");
    }
}

/// Catches: a copy of an answered request for several leases. Its caller cannot know of it.
#[tokio::test]
async fn together_is_copied_only_if_there_is_no_answer() {
    for (answer, arrivals) in [(Fate::default(), 1), (LOST, 2)] {
        let rig = Rig::new(Variant::Pushes);
        rig.fate((0, Leg::Request, 0), copied(millis(80)));
        rig.fate((0, Leg::Answer, 0), answer);
        let (client, request) = (rig.client(0), rig.request());
        let requests = std::slice::from_ref(&request);
        let granted = rig.run(client.acquire_together(requests)).await;
        assert_eq!(granted.is_ok(), arrivals == 1);
        rig.pass(millis(80)).await;
        let events = lock(&rig.events);
        let arrived = events
            .iter()
            .filter(|event| matches!(event, Event::Arrived { .. }));
        assert_eq!(arrived.count(), arrivals);
    }
}

/// Catches: messages that stay in order, and a late look that gains something after its cancel.
#[tokio::test]
async fn a_cancel_may_overtake_its_look() {
    let rig = Rig::new(Variant::Pushes);
    rig.fate((0, Leg::Request, 0), delayed(millis(50)));
    let (client, request) = (rig.client(0), rig.request());
    let requests = client.requests(&request);
    let (looked, cancelled) = rig
        .run(async { tokio::join!(requests.send(LOOK), client.cancel(&request.attempt)) })
        .await;
    cancelled.unwrap();
    assert_eq!(looked.unwrap_err().kind(), ErrorKind::Released);
    assert_eq!(rig.left(), (0, 0));
    let arrived = |number| Event::Arrived {
        message: MessageId { client: 0, number },
        copy: false,
    };
    let events = lock(&rig.events);
    let order = events
        .iter()
        .filter(|event| matches!(event, Event::Arrived { .. }));
    assert!(order.eq([&arrived(1), &arrived(0)]), "{events:?}");
}

/// Catches: a waiter that is never served when its push is lost.
#[tokio::test]
async fn a_waiter_whose_push_is_lost_looks_again() {
    for variant in [Variant::Pushes, Variant::Offers] {
        for (push, most) in [(Fate::default(), 0), (LOST, 300)] {
            let rig = Rig::new(variant);
            rig.fate((1, Leg::Push, 0), push);
            let [holder, waiter] = [0, 1].map(|number| rig.client(number));
            let (first, second) = (rig.request(), rig.waiting());
            let grant = rig.grant(&holder, &first).await;
            let release = async {
                settle().await;
                holder.release(&lease(&first, grant), true).await
            };
            let before = rig.clock.now();
            let (served, _released) = rig
                .run(async { tokio::join!(waiter.acquire(&second), release) })
                .await;
            assert!(served.unwrap().granted().unwrap().token > grant.token);
            let took = rig.clock.now().since(before);
            assert_eq!(took, millis(most), "{variant:?}");
        }
    }
}

/// Catches: a late push of a lease that is over, which the waiter takes for a new grant.
#[tokio::test]
async fn a_push_that_is_older_than_an_answer_grants_nothing() {
    let rig = Rig::new(Variant::Pushes);
    rig.fate((1, Leg::Push, 0), delayed(millis(50)));
    let [holder, waiter] = [0, 1].map(|number| rig.client(number));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let requests = waiter.requests(&second);
    rig.send(&requests, QUEUE).await;
    rig.release(&holder, &first, grant).await;
    // The lease that is being pushed is lost, and another client has the resource.
    rig.service.lose_everything();
    rig.grant(&holder, &rig.request()).await;
    let reply = rig.send(&requests, QUEUE).await;
    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    let wake = rig.run(requests.woken()).await;
    let Wake::Offered(offer) = wake else {
        panic!("{wake:?}")
    };
    assert!(offer.lease.deadline() <= rig.clock.now());
}

/// Catches: a pushed lease that its holder believes to last longer than the service keeps it.
#[tokio::test]
async fn a_pushed_lease_is_counted_from_its_grant() {
    for exchange in [true, false] {
        let rig = Rig::new(Variant::Pushes);
        rig.fate((1, Leg::Push, 0), delayed(millis(50)));
        if !exchange {
            rig.fate((1, Leg::Answer, 0), delayed(millis(500)));
        }
        let [holder, waiter] = [0, 1].map(|number| rig.client(number));
        let (first, second) = (rig.request(), rig.waiting());
        let grant = rig.grant(&holder, &first).await;
        let requests = waiter.requests(&second);
        let asked = rig.clock.now();
        let mut look = pin!(requests.send(QUEUE));
        tokio::select! {
            biased;
            _ = &mut look => assert!(exchange),
            () = settle() => assert!(!exchange),
        }
        rig.pass(millis(20)).await;
        rig.release(&holder, &first, grant).await;
        let wake = rig.run(requests.woken()).await;
        let Wake::Granted(pushed) = wake else {
            panic!("{wake:?}")
        };
        let least = if exchange { millis(20) } else { millis(0) };
        assert_eq!(pushed.lease.deadline(), asked + least + TTL.get());
        let pushed_at = rig.changes().into_iter().find_map(|change| match change {
            Change::Granted {
                way: Way::Push,
                until,
                ..
            } => Some(until),
            _ => None,
        });
        assert!(pushed.lease.deadline() <= pushed_at.unwrap());
    }
}

/// Catches: a doubled push that grants twice, or is not delivered twice.
#[tokio::test]
async fn a_doubled_push_serves_once() {
    let rig = Rig::new(Variant::Offers);
    rig.fate((1, Leg::Push, 0), copied(millis(5)));
    let [holder, waiter] = [0, 1].map(|number| rig.client(number));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let requests = waiter.requests(&second);
    rig.send(&requests, QUEUE).await;
    rig.release(&holder, &first, grant).await;
    let wakes = [
        rig.run(requests.woken()).await,
        rig.run(requests.woken()).await,
    ];
    assert_eq!(wakes[0], wakes[1]);
    let Wake::Offered(offer) = wakes[0] else {
        panic!("{wakes:?}")
    };
    for _ in 0..2 {
        let confirmed = rig.send(&requests, Request::Confirm(offer)).await;
        assert!(matches!(confirmed, Reply::Granted(_)), "{confirmed:?}");
    }
    assert_eq!(rig.left(), (1, 0));
}

/// Catches: an answer that a request was not applied, although a copy of it is applied later.
#[tokio::test]
async fn a_refused_connection_leaves_no_copy() {
    let rig = Rig::new(Variant::Pushes);
    rig.fate((0, Leg::Request, 0), copied(millis(80)));
    rig.service.set_down(true);
    let (client, request) = (rig.client(0), rig.request());
    let requests = client.requests(&request);
    let error: Error = rig.run(requests.send(LOOK)).await.unwrap_err();
    let outcome = (error.kind(), error.outcome());
    assert_eq!(outcome, (ErrorKind::Unavailable, Outcome::NotApplied));
    rig.service.set_down(false);
    rig.pass(millis(80)).await;
    assert_eq!(rig.left(), (0, 0));
}
