//! The checks of the store: the table in `README.md`, with its verdicts.

use models::{assert_breaks_only, assert_holds};

use super::{Check, Floor, Read, Store};

const LOST: &str = "no lost update";
const LATE: &str = "no late write";
const OUT_OF_CLAIM_ORDER: &str = "claim order";
const LOCKED_OUT: &str = "the holder gets in";

fn checked(check: Check) -> Store {
    Store {
        check,
        ..Store::unfenced(2)
    }
}

/// The settings that the rows after the sixth have in common.
fn claimed(acquisitions: usize) -> Store {
    Store {
        acquisitions,
        claims: true,
        ..checked(Check::GreaterOrOwn)
    }
}

/// The lock service may fail over, and its old primary serves on.
fn split(store: Store) -> Store {
    Store {
        fails_over: true,
        splits: true,
        ..store
    }
}

fn with_floor(floor: Floor, store: Store) -> Store {
    Store { floor, ..store }
}

/// First writes may be late.
fn delaying(store: Store) -> Store {
    Store {
        delays_write: true,
        ..store
    }
}

/// A write names the version that it was computed from.
fn comparing(store: Store) -> Store {
    Store {
        compares_versions: true,
        ..store
    }
}

/// The rule as it is built: only a claim moves the mark, and a claim is not made again.
fn built() -> Store {
    Store {
        check: Check::Claimed,
        read: Read::Checked,
        ..claimed(3)
    }
}

/// Catches: a model in which a check of tokens without a claim is enough.
#[test]
fn without_a_claim_updates_are_lost_or_late() {
    let reading = |read| Store {
        read,
        ..checked(Check::GreaterOrOwn)
    };
    for (name, broken, store) in [
        ("nothing is fenced", &[LOST, LATE][..], Store::unfenced(2)),
        (
            "not less, reads unchecked",
            &[LOST, LATE],
            checked(Check::NotLess),
        ),
        (
            "greater or own, reads unchecked",
            &[LOST, LATE],
            checked(Check::GreaterOrOwn),
        ),
        (
            "reads leave the mark",
            &[LOST, LATE],
            reading(Read::Checked),
        ),
        ("reads advance the mark", &[LATE], reading(Read::Advancing)),
        (
            "versions without a claim",
            &[LATE],
            comparing(checked(Check::GreaterOrOwn)),
        ),
    ] {
        assert_breaks_only(name, broken, store);
    }
}

/// Catches: a mark without its holder, which accepts two holders of one token.
#[test]
fn with_a_failover_the_mark_has_to_know_its_holder() {
    let all = [LOST, LATE, OUT_OF_CLAIM_ORDER, LOCKED_OUT];
    let no_holder = Store {
        claims: true,
        fails_over: true,
        ..checked(Check::NotLess)
    };
    assert_breaks_only("failover, no holder", &all, no_holder);
    let shared = Store {
        shares_holder: true,
        ..split(claimed(3))
    };
    assert_breaks_only("one holder id", &all, shared);
}

/// Catches: a holder who trusts a token of an old primary, or a value from before its claim.
#[test]
fn with_a_failover_a_holder_needs_a_floor_and_another_read() {
    let broken = [LATE, LOCKED_OUT];
    assert_breaks_only("two primaries", &broken, split(claimed(3)));
    let held = with_floor(Floor::IfHeld, split(claimed(3)));
    assert_breaks_only("a floor for the holder", &[LATE], held);
    let anyone = Store {
        floors: 1,
        ..with_floor(Floor::Always, split(claimed(3)))
    };
    assert_breaks_only("a floor for anyone", &[LATE], anyone);
    let earlier = Store {
        fails_over: true,
        keeps_read: true,
        ..with_floor(Floor::IfHeld, claimed(2))
    };
    assert_breaks_only("the earlier read", &[LOST], earlier);
}

/// Catches: a late write of the holder that takes effect after its own next write.
#[test]
fn a_late_write_of_the_holder_itself_has_to_name_its_version() {
    assert_holds("a claim", claimed(3));
    assert_breaks_only("its own late write", &[LOST], delaying(claimed(2)));
    let told = comparing(delaying(claimed(2)));
    assert_holds("its own late write, told", told.clone());
    let failover = with_floor(Floor::IfHeld, split(told));
    assert_holds("its own late write, told, and a failover", failover);
}

/// Catches: a rule that is built otherwise than every rule that was searched.
#[test]
fn the_rule_as_built() {
    assert_holds("as built", built());
    assert_breaks_only("as built, its own late write", &[LOST], delaying(built()));
    assert_holds("as built, and versions", comparing(delaying(built())));
    let failover = with_floor(Floor::IfHeld, split(built()));
    assert_breaks_only("as built, two primaries", &[LATE], failover);
}
