use std::time::Duration;

use lock_core::{FencingToken, Holder, Issuer, ResourceName};

use super::*;

fn grant(resource: &str, token: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new(resource).unwrap(),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    )
}

fn at(second: u64) -> Moment {
    Moment::from_origin(Duration::from_secs(second))
}

fn event(grant: &Sequencer, asked: u64, answered: u64) -> Event {
    Event {
        grant: grant.clone(),
        asked: at(asked),
        answered: at(answered),
    }
}

fn granted(events: &[(u64, u64, u64)]) -> History {
    let history = History::default();
    for (token, asked, answered) in events {
        history.granted(event(&grant("r", *token), *asked, *answered));
    }
    history
}

/// Catches: tokens of different resources that are compared.
#[test]
fn another_resource_has_an_order_of_its_own() {
    let history = granted(&[(5, 0, 1)]);
    history.granted(event(&grant("other", 4), 2, 3));
    history.assert_sound();
}

/// Catches: a repeated token that goes unseen, or an acquisition that is taken for two.
#[test]
fn a_token_that_is_granted_twice_is_found_even_if_the_grants_overlap() {
    let history = granted(&[(7, 0, 10), (7, 5, 10)]);
    assert_eq!(history.repeated().len(), 1);
    let one = grant("r", 8);
    let same = granted(&[]);
    for _ in 0..2 {
        same.granted(event(&one, 0, 1));
    }
    assert!(
        same.repeated().is_empty(),
        "the same acquisition, told again"
    );
    assert!(same.out_of_order().is_empty());
}

/// Catches: a stale write that goes unseen.
#[test]
fn a_write_after_a_greater_claim_is_found() {
    let (old, new) = (grant("r", 1), grant("r", 2));
    let history = History::default();
    history.claimed(event(&old, 0, 1));
    history.claimed(event(&new, 2, 3));
    history.written(event(&old, 3, 4)); // may have been before the claim was answered
    history.written(event(&new, 4, 5));
    history.assert_sound();
    history.written(event(&old, 4, 5));
    let found = history.accepted_though_stale();
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Compares the scan with the definition, on all sorts of histories.
/// Catches: a grant out of order that goes unseen, or a coincidence that is called a fault.
#[test]
fn the_scan_finds_what_the_definition_says() {
    let mut seed = 1_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for _ in 0..500 {
        let holders: Vec<_> = (0..6).map(|_| grant("r", 1 + next(4))).collect();
        let events: Vec<_> = (0..8)
            .map(|_| {
                let asked = next(10);
                event(
                    &holders[usize::try_from(next(6)).unwrap()],
                    asked,
                    asked + next(4),
                )
            })
            .collect();
        let (first, second) = events.split_at(4);
        let breaks = |later: &&Event| {
            first.iter().any(|earlier| {
                earlier.answered < later.asked
                    && earlier.grant.token() >= later.grant.token()
                    && earlier.grant.holder() != later.grant.holder()
            })
        };
        let expected = second.iter().filter(breaks).count();
        assert_eq!(overtaken(first, second).len(), expected, "{events:?}");
    }
}
