use lock_core::{
    ErrorKind, FencingToken, InitialToken, Outcome,
    backend::{LockBackend as _, RenewRequest, Renewed, Reply, Runtime as _},
};

use super::*;

/// A service whose tokens begin at 1.
fn from_one(variant: Variant) -> Rig {
    let mut settings = Settings::new(variant);
    settings.initial = InitialToken::At(FencingToken::MIN);
    Rig::with(settings)
}

/// Catches: a pause that loses requests, and a pause in which some requests are answered.
#[tokio::test]
async fn a_paused_server_reads_requests_later() {
    let rig = Rig::new(Variant::Pushes);
    rig.service.pause(rig.clock.now() + millis(400));
    let (client, request) = (rig.client(0), rig.request());
    rig.pass(millis(100)).await;
    let grant = rig.grant(&client, &request).await;
    assert_eq!(rig.clock.now().since_origin(), millis(400));
    // The lease is counted from its request.
    assert_eq!(
        grant.lease.deadline().since_origin(),
        millis(100) + TTL.get()
    );
}

/// Catches: a request that was sent to a server that stopped, and is said not to have been applied.
#[tokio::test]
async fn a_request_to_a_paused_server_that_goes_down_is_lost() {
    let rig = Rig::new(Variant::Pushes);
    rig.service.pause(rig.clock.now() + millis(400));
    let (client, request) = (rig.client(0), rig.request());
    let requests = client.requests(&request);
    let stop = async {
        settle().await;
        rig.service.set_down(true);
    };
    let (answer, ()) = rig
        .run(async { tokio::join!(requests.send(LOOK), stop) })
        .await;
    assert_eq!(answer.unwrap_err().outcome(), Outcome::Unknown);
}

/// Catches: a queue that is not lost, and a waiter that is not served after it was.
#[tokio::test]
async fn a_waiter_outlives_the_loss_of_the_queue() {
    let rig = Rig::new(Variant::Pushes);
    let [holder, waiter] = [0, 1].map(|number| rig.client(number));
    let (first, second) = (rig.request(), rig.waiting());
    let grant = rig.grant(&holder, &first).await;
    let lose = async {
        settle().await;
        assert_eq!(rig.left(), (1, 1));
        rig.service.lose_queue();
        assert_eq!(rig.left(), (1, 0));
        holder.release(&lease(&first, grant), true).await
    };
    let (served, _released) = rig
        .run(async { tokio::join!(waiter.acquire(&second), lose) })
        .await;
    assert!(served.unwrap().granted().is_some());
    assert_eq!(rig.clock.now().since_origin(), millis(300));
}

/// Catches: a service that keeps its counter or its tombstones when it loses everything.
#[tokio::test]
async fn tokens_begin_anew_when_everything_is_lost() {
    let rig = from_one(Variant::Pushes);
    let (client, request) = (rig.client(0), rig.request());
    let grant = rig.grant(&client, &request).await;
    let held = lease(&request, grant);
    rig.run(client.release(&held, true)).await.unwrap();
    let requests = client.requests(&request);
    let error = rig.run(requests.send(LOOK)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released);
    rig.service.lose_everything();
    assert_eq!(rig.grant(&client, &request).await.token, grant.token);
}

/// Catches: a failover that keeps leases that the copy lacks, or forgets leases that it has.
#[tokio::test]
async fn a_failover_forgets_what_came_after_the_copy() {
    let rig = from_one(Variant::Pushes);
    let client = rig.client(0);
    let (first, second) = (rig.request(), rig.request());
    let grant = rig.grant(&client, &first).await;
    let copy = rig.service.copy();
    rig.release(&client, &first, grant).await;
    let later = rig.grant(&client, &second).await;
    rig.service.fail_over_to(copy);
    let renew = async |request, grant| {
        let renewal = RenewRequest::new(lease(request, grant), TTL);
        let renewed = rig.run(client.renew(&[renewal])).await;
        renewed.into_iter().next().unwrap().unwrap()
    };
    assert_eq!(renew(&second, later).await, Renewed::NotHolder);
    assert!(matches!(renew(&first, grant).await, Renewed::Renewed(_)));
    rig.release(&client, &first, grant).await;
    // The token that was given out before.
    assert_eq!(rig.grant(&client, &rig.request()).await.token, later.token);
}

/// Catches: a jump of the server's clock that moves no end of a lease, or moves a client's clock.
#[tokio::test]
async fn leases_end_by_the_clock_of_the_server() {
    let rig = Rig::new(Variant::Pushes);
    let (client, request) = (rig.client(0), rig.request());
    let deadline = rig.grant(&client, &request).await.lease.deadline();
    rig.service.step_clock_forward(TTL.get() - millis(1));
    assert_eq!(rig.left(), (1, 0));
    rig.service.step_clock_forward(millis(1));
    assert_eq!(rig.left(), (0, 0));
    rig.service.step_clock_back(TTL.get());
    assert_eq!(rig.left(), (1, 0));
    rig.clock.advance(TTL.get());
    assert!(deadline <= rig.clock.now());
    rig.service.step_clock_back(millis(1));
    let stranger = rig.request();
    let reply = rig.send(&client.requests(&stranger), LOOK).await;
    assert_eq!(reply, Reply::Held { left: millis(1) });
}

/// Catches: two runs of the same requests that differ.
#[tokio::test]
async fn the_same_requests_leave_the_same_events() {
    let events = async || {
        let rig = Rig::new(Variant::Offers);
        let clients = [0, 1, 2].map(|number| rig.client(number));
        for round in 0..3 {
            let requests = [(); 3].map(|()| rig.waiting());
            let turn = async |number: usize| {
                let (client, request) = (&clients[number], &requests[number]);
                let grant = client.acquire(request).await.unwrap().granted().unwrap();
                let tombstone = round == number;
                client.release(&lease(request, grant), tombstone).await
            };
            let turns = async { tokio::join!(biased; turn(0), turn(1), turn(2)) };
            let (first, second, third) = rig.run(turns).await;
            assert!(first.is_ok() && second.is_ok() && third.is_ok());
        }
        format!("{:?}", lock(&rig.events))
    };
    let first = events().await;
    assert!(first.contains("Confirmed"));
    assert_eq!(first, events().await);
}
