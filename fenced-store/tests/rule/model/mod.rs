//! Random histories: after each request the store has given the same answer, and has the same
//! state, as a model of a few lines.

mod reference;
mod steps;

use std::collections::BTreeMap;

use fenced_store::{Begin, Dialect, FenceError, FencedStore};
use lock_core::{Holder, Sequencer};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::{runtime::Handle, task::block_in_place};

use self::{
    reference::Reference,
    steps::{End, RESOURCES, Step, Which},
};
use super::{SqlHarness, balance, fresh, grant_by, high_water, token};

const HISTORIES: u32 = 16;
/// The write of a single statement.
const ADD: &str = "UPDATE accounts SET balance = balance + 1";

/// Every history has resources and holders of its own. All histories share a database, whose issuer
/// is set.
pub(crate) async fn the_store_does_what_the_model_says<H: SqlHarness>() {
    let world: H = fresh().await;
    world
        .store()
        .claim(&grant_by("redis", "first", 1))
        .await
        .unwrap();
    let mut runner = TestRunner::new(Config {
        cases: HISTORIES,
        failure_persistence: None,
        ..Config::default()
    });
    let (mut history, mut answers) = (0, BTreeMap::new());
    let mut play = |steps: Vec<Step>| {
        history += 1;
        let playing = play(&world, history, &steps, &mut answers);
        Handle::current().block_on(playing)
    };
    let played = block_in_place(|| {
        let play = std::cell::RefCell::new(&mut play);
        runner.run(&steps::history(), |steps| (play.borrow_mut())(steps))
    });
    if let Err(error) = played {
        panic!("{error}");
    }
    // A run without any answer of a kind has not tested that kind.
    for kind in ["Ok", "Stale", "DuplicateToken", "NotClaimed", "WrongIssuer"] {
        assert!(answers.contains_key(kind), "no {kind} in {answers:?}");
    }
}

/// The grants of one history.
struct Cast {
    history: u32,
    holders: [Holder; 2],
}

impl Cast {
    fn resource(&self, index: usize) -> String {
        format!("history:{}:{index}", self.history)
    }

    /// A certain grant, or the one that may write, if there is one.
    fn grant(&self, which: Which, reference: &Reference) -> Sequencer {
        let (resource, number, holder, issuer) = match which {
            Which::Current { resource } => {
                let current = reference.current(&self.resource(resource));
                return current
                    .cloned()
                    .unwrap_or_else(|| self.sequencer("redis", resource, 1, 0));
            }
            Which::Certain {
                resource,
                token,
                holder,
                foreign,
            } => (
                resource,
                token,
                holder,
                if foreign { "etcd" } else { "redis" },
            ),
        };
        self.sequencer(issuer, resource, number, holder)
    }

    fn sequencer(&self, issuer: &str, resource: usize, number: u64, holder: usize) -> Sequencer {
        let any = grant_by(issuer, &self.resource(resource), number);
        let (issuer, resource) = (any.issuer().clone(), any.resource().clone());
        Sequencer::new(issuer, resource, token(number), self.holders[holder])
    }
}

async fn play<H: SqlHarness>(
    world: &H,
    history: u32,
    steps: &[Step],
    answers: &mut BTreeMap<String, usize>,
) -> Result<(), TestCaseError> {
    let (store, holders) = (world.store(), [Holder::random(), Holder::random()]);
    let cast = Cast { history, holders };
    let mut reference = Reference::new(balance(world).await);
    for step in steps {
        let (expected, answered) = match step {
            Step::Claim(which) => {
                let grant = cast.grant(*which, &reference);
                (reference.claim(&grant), store.claim(&grant).await)
            }
            Step::Settle(which) => {
                let grant = cast.grant(*which, &reference);
                (reference.settle(&grant), store.settle(&grant).await)
            }
            Step::Write { grants, end } => {
                let grants: Vec<_> = grants
                    .iter()
                    .map(|which| cast.grant(*which, &reference))
                    .collect();
                let commits = !matches!(end, End::Rollback | End::Drop);
                let expected = reference.write(&grants, commits);
                (expected, write::<H>(begin(store, &grants), *end).await)
            }
        };
        *answers.entry(kind(&answered)).or_default() += 1;
        assert_same(&text(&expected), &text(&answered), step)?;
        assert_same(&reference.balance(), &balance(world).await, step)?;
        for index in 0..RESOURCES {
            let name = cast.resource(index);
            let mark = reference.current(&name).map(|grant| grant.token().get());
            assert_same(&mark, &high_water(world, &name).await, step)?;
        }
    }
    Ok(())
}

fn begin<'a, DB: Dialect>(store: &'a FencedStore<DB>, grants: &'a [Sequencer]) -> Begin<'a, DB> {
    let begin = store.begin(&grants[0]);
    grants[1..].iter().fold(begin, Begin::and)
}

async fn write<H: SqlHarness>(begin: Begin<'_, H::Db>, end: End) -> Result<(), FenceError> {
    if end == End::Single {
        // Not prepared: clients of a PgBouncer may share their sessions.
        return begin.execute(sqlx::raw_sql(ADD)).await.map(drop);
    }
    let mut tx = begin.await?;
    H::add(&mut tx, 1).await?;
    match end {
        End::Rollback => return tx.rollback().await,
        End::Drop => return Ok(()),
        End::UndoneSavepoint => {
            let mut savepoint = tx.begin().await?;
            H::add(&mut savepoint, 10).await?;
            savepoint.rollback().await?;
        }
        End::Commit | End::Single => {}
    }
    tx.commit().await.map(drop)
}

/// Errors are equal if their texts are equal.
fn text(answer: &Result<(), FenceError>) -> String {
    match answer {
        Ok(()) => "Ok".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The name of the variant.
fn kind(answer: &Result<(), FenceError>) -> String {
    let debug = match answer {
        Ok(()) => return "Ok".to_owned(),
        Err(error) => format!("{error:?}"),
    };
    let end = debug
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(debug.len());
    debug[..end].to_owned()
}

fn assert_same<T: PartialEq + std::fmt::Debug>(
    expected: &T,
    seen: &T,
    step: &dyn std::fmt::Debug,
) -> Result<(), TestCaseError> {
    if expected == seen {
        return Ok(());
    }
    let wrong = format!("{step:?}: the model says {expected:?}, the store {seen:?}");
    Err(TestCaseError::fail(wrong))
}
