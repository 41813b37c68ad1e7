//! A run that misses one of these has become too narrow: a change of the plans or of the code keeps
//! schedules away from it.

/// The least counts are meant for this number of schedules.
pub(super) const SCHEDULES: u64 = 100_000;

/// How often each situation has to come up at least: a third of its usual count, or less.
pub(super) const LEAST: &[(&str, u64)] = &[
    // Leases that end, or go from hand to hand.
    ("lease expired", 40_000),
    ("lease cancelled", 30_000),
    ("lease forced", 10_000),
    ("lease lost", 300),
    ("lease by a push", 25_000),
    ("offer confirmed", 25_000),
    ("offer expired", 2_000),
    ("cancel during a hand-off", 1_000),
    ("force during a hand-off", 100),
    ("state lost during a hand-off", 40),
    ("hold given back", 20_000),
    ("release without an answer", 2_500),
    ("release of a lease that was gone", 10_000),
    // Requests and answers that are late, lost or copied.
    ("copy met a tombstone", 40_000),
    ("cancel before its acquire", 15_000),
    ("late grant given back", 5_000),
    ("acquisition repeated after its release", 20_000),
    ("acquisition ended by a shutdown", 1_000),
    ("queue lost while others wait", 1_500),
    // Clients that stop, and what others do meanwhile.
    ("stopped beyond the lease", 10_000),
    ("lease was lost before a transaction", 5_000),
    ("transaction refused", 8_000),
    ("claim ended an older transaction", 1_500),
    ("holder shut out by force", 4_000),
    ("grant was stale", 1_500),
    ("floor repaired", 120),
    ("commit unknown", 4_000),
    ("unknown commit settled", 1_500),
    ("guard kept in an error", 400),
    // Jobs and leaders.
    ("takeover between steps", 1_000),
    ("job backing off", 1_000),
    ("step asked for after an unknown commit", 250),
    ("leader in a further term", 7_000),
    ("deposed leader refused", 200),
    // Requests over HTTP.
    ("stale request refused at the edge", 1_500),
    ("late copy refused at the edge", 400),
    ("request with a flaw refused", 10_000),
    ("request before its claim", 2_500),
    ("request to be sent again", 500),
    ("request without an answer", 2_000),
    ("request accepted after a release", 800),
    ("success that was not fenced", 700),
    // Faults of the lock service.
    ("fault: silent", 5_000),
    ("fault: down", 5_000),
    ("fault: queue lost", 5_000),
    ("fault: everything lost", 1_500),
    ("fault: failed over", 1_500),
    ("fault: clock forward", 1_500),
    ("fault: clock back", 1_500),
];

/// How often decisions of an acquisition that depend on chance have to come up at least.
pub(super) const DECISIONS: &[(&str, u64)] = &[
    ("Asking Cancel x Replied Cancelled -> Answer Failed", 100),
    ("Asking Cancel x Woken Offered -> Wait for the answer", 150),
    ("Asking Confirm x Closed -> Send Cancel", 10),
    ("Asking Confirm x Due -> Answer Failed", 250),
    ("Asking Confirm x Gone -> Send Cancel", 300),
    (
        "Asking Confirm x Replied Gone -> Send Look in the queue",
        30,
    ),
    ("Asking Confirm x Replied Granted -> Answer Late", 30),
    (
        "Asking Confirm x Replied Unavailable, unknown -> Send Look in the queue",
        2_500,
    ),
    ("Asking Confirm x Woken Look -> Wait for the answer", 10),
    ("Asking Look x Closed -> Send Cancel", 1_000),
    ("Asking Look x Replied Granted -> Answer Late", 500),
    (
        "Asking Look x Replied Offered -> Send Look in the queue",
        300,
    ),
    ("Asking Look x Replied Queued -> Send Cancel", 2_000),
    ("Asking Look x Replied Unavailable -> Send Look", 100),
    (
        "Asking Look x Replied that it was released -> Answer Late",
        3_000,
    ),
    ("Asking Look x Woken Granted -> Answer Granted", 5_000),
    ("Asking Look x Woken Offered -> Send Confirm", 5_000),
    (
        "Asking Release x Gone -> Send Release with a tombstone",
        1_000,
    ),
    (
        "Asking Release x Replied NotHolder -> Answer Released",
        3_000,
    ),
    (
        "Gone, Asking Cancel x Replied Unavailable, unknown -> Answer Abandoned",
        5_000,
    ),
    (
        "Gone, Asking Release x Replied NotHolder -> Send Cancel",
        20_000,
    ),
    ("New x Closed -> Answer Failed", 600),
    ("Pausing Look x Closed -> Send Cancel", 30),
    ("Pausing Look x Gone -> Send Cancel", 2_000),
    ("Pausing Look x Woken Granted -> Answer Granted", 150),
    ("Pausing Look x Woken Offered -> Send Confirm", 150),
    ("Pausing last Release x Due -> Answer Failed", 80),
    ("Resting x Closed -> Send Cancel", 800),
    ("Resting x Woken Granted -> Answer Late", 250),
    ("Resting x Woken Look -> Send Look in the queue", 20_000),
    ("Resting x Woken Offered -> Send Confirm", 15_000),
    ("Resting x Woken Offered -> Send Look in the queue", 600),
];
