//! Plans that have broken a promise once, as small as they became.
#![forbid(unsafe_code)]

use std::time::Duration;

use simulation::{
    plan::{Client, Death, Net, Plan, Task, Work},
    schedule,
    service::Variant,
    world::Order,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn work(after: u64, task: Task, on: u8) -> Work {
    Work {
        after: ms(after),
        task,
        on,
        takes: Duration::ZERO,
        wait: None,
        dropped: None,
        stopped: None,
        choice: 0,
    }
}

fn client(works: &[Work]) -> Client {
    Client {
        works: works.to_vec(),
        pauses: Vec::new(),
        killed: None,
    }
}

fn assert_kept(plan: &Plan) {
    let report = schedule::run(plan, false);
    assert_eq!(report.broken, None);
}

/// The request at the end of the wait was under way when an offer arrived, and its confirmation got
/// half a second of its own.
/// Catches: a wait that ends later than 0.6 s after its time.
#[test]
fn an_offer_at_the_end_of_a_wait_does_not_prolong_it() {
    let net = |delay, lost, late| Net {
        delay: ms(delay),
        lost,
        copied: 0,
        late,
        late_by: ms(8_000),
    };
    let both = Work {
        takes: ms(3_542),
        dropped: Some((13, true)),
        ..work(39, Task::Both, 0)
    };
    let lease = Work {
        wait: Some(ms(5_948)),
        choice: 64,
        ..work(0, Task::Lease, 0)
    };
    let dropped = Work {
        dropped: Some((1, false)),
        ..work(0, Task::Try, 0)
    };
    assert_kept(&Plan {
        seed: 36_449,
        order: Order::Fifo,
        variant: Variant::Offers,
        ttl: Duration::from_secs(3_600),
        is_long: true,
        to_service: net(5, 201, 66),
        to_store: net(0, 96, 0),
        lock_timeout: ms(300),
        clients: vec![
            client(&[work(0, Task::Lease, 0)]),
            Client {
                killed: Some((ms(1), Death::Killed)),
                ..client(&[work(0, Task::Try, 1), work(0, Task::Try, 0)])
            },
            client(&[work(81, Task::Try, 0), both, work(0, Task::Try, 0)]),
            client(&[lease]),
            client(&[dropped, work(218, Task::Both, 1)]),
        ],
        faults: Vec::new(),
        calm: ms(12_000),
    });
}

/// The watchdog had a schedule only for leases that it renews.
/// Catches: a lease that is not renewed, and counts as held until a call uses its guard.
#[test]
fn the_loss_of_a_lease_that_is_not_renewed_is_noticed() {
    let lease = Work {
        takes: ms(1_000),
        // It is not renewed, and no call uses its guard meanwhile.
        choice: 65,
        ..work(0, Task::Lease, 0)
    };
    assert_kept(&Plan {
        seed: 52,
        order: Order::Fifo,
        variant: Variant::Pushes,
        ttl: ms(1_000),
        is_long: false,
        to_service: Net::default(),
        to_store: Net::default(),
        lock_timeout: ms(300),
        clients: vec![client(&[lease])],
        faults: Vec::new(),
        calm: ms(12_000),
    });
}

/// A client was killed while it waited. Its place outlived it by 30 s, and the lease of another
/// client, who was stopped, ended in the last half second of these.
/// Catches: an operator of a schedule who stops looking while a dead client may still get a lease.
#[test]
fn a_lease_that_goes_to_a_dead_waiter_late_is_ended_by_the_operator() {
    let lease = |after, choice| Work {
        choice,
        ..work(after, Task::Lease, 0)
    };
    let stopped = Work {
        takes: ms(7_697),
        stopped: Some((0, ms(5_710))),
        ..lease(4, 96)
    };
    assert_kept(&Plan {
        seed: 2_917_856_357,
        order: Order::Fifo,
        variant: Variant::Pushes,
        ttl: Duration::from_secs(3_600),
        is_long: true,
        to_service: Net {
            delay: ms(19),
            lost: 49,
            copied: 0,
            late: 0,
            late_by: ms(8_000),
        },
        to_store: Net::default(),
        lock_timeout: ms(300),
        clients: vec![
            client(&[lease(9, 16)]),
            Client {
                killed: Some((ms(2_400), Death::Killed)),
                ..client(&[lease(116, 32), lease(0, 48)])
            },
            Client {
                pauses: vec![(9, ms(9_836))],
                ..client(&[stopped])
            },
        ],
        faults: Vec::new(),
        calm: ms(12_000),
    });
}
