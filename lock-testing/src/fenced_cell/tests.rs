use super::*;
use lock_core::{FencingToken, Holder, Issuer, ResourceName};

fn grant(token: u64, holder: u8) -> Sequencer {
    grant_of("locks", "account", token, holder)
}

fn grant_of(issuer: &str, resource: &str, token: u64, holder: u8) -> Sequencer {
    Sequencer::new(
        Issuer::new(issuer).unwrap(),
        ResourceName::new(resource).unwrap(),
        FencingToken::new(token).unwrap(),
        format!("{holder:032x}").parse::<Holder>().unwrap(),
    )
}

/// The mark and the value, which a refusal must not change.
fn state(cell: &FencedCell<u32>) -> (Option<Sequencer>, u32) {
    let row = cell.row();
    (row.mark.clone(), row.value)
}

/// Catches: a cell that accepts a grant that a store would refuse, so that a pause test passes.
#[tokio::test]
async fn only_the_grant_of_the_mark_reads_and_writes() {
    let (cell, mine) = (FencedCell::new(1), grant(5, 1));
    cell.claim(&mine).await.unwrap();
    cell.claim(&mine).await.unwrap();
    cell.write(&mine, 2).await.unwrap();
    assert_eq!(cell.read(&mine).await, Ok(2));

    let before = state(&cell);
    let at = |token| FencingToken::new(token).unwrap();
    let refusals = [
        (
            grant(4, 1),
            Refused::Stale {
                presented: at(4),
                high_water: at(5),
            },
        ),
        (grant(5, 2), Refused::DuplicateToken { presented: at(5) }),
        (grant(6, 2), Refused::NotClaimed { presented: at(6) }),
        (
            grant_of("others", "account", 5, 1),
            Refused::WrongIssuer {
                presented: Issuer::new("others").unwrap(),
                current: Issuer::new("locks").unwrap(),
            },
        ),
        (
            grant_of("locks", "other", 5, 1),
            Refused::WrongResource {
                presented: ResourceName::new("other").unwrap(),
                current: ResourceName::new("account").unwrap(),
            },
        ),
    ];
    for (grant, refusal) in refusals {
        assert_eq!(cell.read(&grant).await, Err(refusal.clone()));
        assert_eq!(cell.write(&grant, 9).await, Err(refusal.clone()));
        if !matches!(refusal, Refused::NotClaimed { .. }) {
            assert_eq!(cell.claim(&grant).await, Err(refusal));
        }
        assert_eq!(state(&cell), before);
    }
}
