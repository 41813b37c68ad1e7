use lock_core::backend::{LockBackend as _, Reply, Runtime as _, Wake};

use super::*;

/// The first waiter does not react to its offer. So the second waiter is served, and then the
/// first, which asks again and keeps its place.
/// Catches: an offer that stays for ever, and a waiter that loses its turn with its offer.
#[tokio::test]
async fn an_offer_that_is_not_confirmed_goes_to_the_next() {
    let rig = Rig::new(Variant::Offers);
    let clients = [0, 1, 2, 3].map(|number| rig.client(number));
    let requests = [rig.request(), rig.waiting(), rig.waiting(), rig.waiting()];
    let grant = rig.grant(&clients[0], &requests[0]).await;
    let asking = [1, 2, 3].map(|number| clients[number].requests(&requests[number]));
    for waiter in &asking {
        rig.send(waiter, QUEUE).await;
    }
    rig.release(&clients[0], &requests[0], grant).await;
    rig.clock.advance(Settings::new(Variant::Offers).offer_ttl);
    // Any request finds that the offer is over.
    rig.run(clients[3].inspect(&requests[0].attempt.resource))
        .await
        .unwrap();
    let wake = rig.run(asking[1].woken()).await;
    let Wake::Offered(offer) = wake else {
        panic!("{wake:?}")
    };
    let confirmed = rig.send(&asking[1], Request::Confirm(offer)).await;
    let Reply::Granted(grant) = confirmed else {
        panic!("{confirmed:?}")
    };
    assert_eq!(grant.lease.deadline(), rig.clock.now() + TTL.get());
    let reply = rig.send(&asking[0], QUEUE).await;
    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    rig.release(&clients[2], &requests[2], grant).await;
    let left = rig.service.left_behind();
    assert_eq!(left.leases[0].holder, requests[1].attempt.holder);
    assert!(left.leases[0].is_offer);
    let ends = rig.changes().into_iter().filter_map(|change| match change {
        Change::Ended { how, .. } => Some(how),
        _ => None,
    });
    let expected = [
        HowEnded::Released,
        HowEnded::OfferExpired,
        HowEnded::Released,
    ];
    assert!(ends.eq(expected));
}

/// Catches: an offer that counts as a lease before it is confirmed.
#[tokio::test]
async fn an_offer_cannot_be_renewed() {
    let rig = Rig::new(Variant::Offers);
    let [holder, waiter] = [0, 1].map(|number| rig.client(number));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let asking = waiter.requests(&second);
    rig.send(&asking, QUEUE).await;
    rig.release(&holder, &first, grant).await;
    let Reply::Offered(offer) = rig.send(&asking, QUEUE).await else {
        panic!("it is offered")
    };
    let renewal = lock_core::backend::RenewRequest::new(lease(&second, offer), TTL);
    let renewed = rig.run(waiter.renew(&[renewal])).await.remove(0);
    let not_holder = lock_core::backend::Renewed::NotHolder;
    assert_eq!(renewed.unwrap(), not_holder);
    let gone = rig.run(waiter.cancel(&second.attempt)).await;
    gone.unwrap();
    let reply = rig.send(&asking, Request::Confirm(offer)).await;
    assert_eq!((reply, rig.left()), (Reply::Gone, (0, 0)));
}

/// Catches: a free resource that is kept for a waiter that does not look, and a resource that a
/// newcomer takes before that waiter.
#[tokio::test]
async fn the_place_of_a_waiter_that_does_not_look_lapses() {
    let rig = Rig::new(Variant::Polls);
    let clients = [0, 1, 2].map(|number| rig.client(number));
    let requests = [rig.request(), rig.waiting(), rig.waiting()];
    let grant = rig.grant(&clients[0], &requests[0]).await;
    let asking = [1, 2].map(|number| clients[number].requests(&requests[number]));
    rig.send(&asking[0], QUEUE).await;
    rig.release(&clients[0], &requests[0], grant).await;
    let place_ttl = Settings::new(Variant::Polls).place_ttl;
    let left = place_ttl;
    assert_eq!(rig.send(&asking[1], LOOK).await, Reply::Held { left });
    rig.clock.advance(place_ttl - millis(1));
    let reply = rig.send(&asking[1], QUEUE).await;
    let left = millis(1);
    let look_again = left;
    assert_eq!(reply, Reply::Queued { left, look_again });
    assert_eq!(rig.left(), (0, 2));
    rig.clock.advance(millis(1));
    let reply = rig.send(&asking[1], QUEUE).await;
    assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    assert_eq!(rig.left(), (1, 0));
}

/// Catches: a service without a queue that keeps places.
#[tokio::test]
async fn a_service_without_a_queue_keeps_no_place() {
    let rig = Rig::new(Variant::Unqueued);
    let [holder, waiter] = [0, 1].map(|number| rig.client(number));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let reply = rig.send(&waiter.requests(&second), QUEUE).await;
    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
    assert_eq!(rig.left(), (1, 0));
    rig.release(&holder, &first, grant).await;
    rig.grant(&holder, &rig.request()).await;
}

/// Catches: effects that are missing, or that contradict the answers.
#[tokio::test]
async fn effects_are_those_of_the_answers() {
    let rig = Rig::new(Variant::Pushes);
    let (client, request) = (rig.client(0), rig.request());
    let first = rig.grant(&client, &request).await;
    let mut again = request.clone();
    again.attempt.id = rig.request().attempt.id;
    rig.grant(&client, &again).await;
    let held = lease(&request, first);
    for attempt in [&request.attempt, &again.attempt] {
        rig.run(client.release_hold(&held, attempt.id))
            .await
            .unwrap();
    }
    let short = rig.request();
    let second = rig.grant(&client, &short).await;
    rig.clock.advance(TTL.get());
    let resource = &short.attempt.resource;
    rig.run(client.inspect(resource)).await.unwrap();
    let (token, next) = (first.token, second.token);
    let until = first.lease.deadline();
    let way = Way::Answer;
    let granted = |token, attempt| Change::Granted {
        token,
        attempt,
        until,
        way,
    };
    let [of_first, of_again] = [&request, &again].map(|request| request.attempt.id);
    let ended = |token, how| Change::Ended { token, how };
    let expected = [
        granted(token, of_first),
        Change::Joined {
            token,
            attempt: of_again,
        },
        Change::HoldEnded {
            token,
            attempt: of_first,
        },
        ended(token, HowEnded::LastHold),
        granted(next, short.attempt.id),
        ended(next, HowEnded::Expired),
    ];
    assert_eq!(rig.changes(), expected);
}
