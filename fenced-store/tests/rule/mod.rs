//! The store rule as behaviour: one case for each sentence of the rule, and the same cases for
//! every database.
//!
//! A database brings a [`Harness`]; `rule_cases!` makes one named test of each case. The end-to-end
//! tests mount this module too, for the databases that need a server.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod acquire_all;
mod admin;
mod claim;
mod dropped;
mod enter;
mod errors;
pub(crate) mod everywhere;
mod forget;
mod handover;
mod migrate;
mod model;
mod observe;
mod protect;
mod settle;
mod several;
mod single;
mod transact;

use fenced_store::{Dialect, Executed, FenceError, FencedStore, FencedTx, Storage, jobs::to_read};
use lock_core::{FencingToken, Holder, Issuer, Plausibility, ResourceName, Sequencer};

pub(crate) use self::{
    acquire_all::*, admin::*, claim::*, dropped::*, enter::*, errors::*, forget::*, handover::*,
    migrate::*, model::*, observe::*, protect::*, settle::*, several::*, single::*, transact::*,
};

/// A store in which account 42 has 100.
pub(crate) trait Harness: Send + Sync + Sized + 'static {
    type Db: Storage;

    /// A world that is ready for fenced writes.
    fn fresh() -> impl Future<Output = Self> + Send;

    fn store(&self) -> &FencedStore<Self::Db>;

    /// The same store with a lock timeout of 100 ms in place of seconds.
    fn impatient(&self) -> impl Future<Output = FencedStore<Self::Db>> + Send;

    /// Adds to the balance of account 42.
    fn add(
        session: &mut <Self::Db as Storage>::Session,
        amount: i64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Adds to the balance of account 42, unfenced and outside of any transaction.
    fn add_unfenced(
        store: &FencedStore<Self::Db>,
        amount: i64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// The balance of account 42.
    fn balance(session: &mut <Self::Db as Storage>::Session) -> impl Future<Output = i64> + Send;
}

/// A fresh database with a table `accounts (id, balance)`.
pub(crate) trait SqlHarness: Harness<Db: Dialect> {
    /// The migrations table.
    const BOOKS: &'static str;

    /// An empty world, without the tables of fenced-store.
    fn unmigrated() -> impl Future<Output = Self> + Send;

    /// The store that migrates, if there are several ways to the database.
    fn to_migrate(&self) -> &FencedStore<Self::Db> {
        self.store()
    }

    /// A store with a single connection: its next user finds everything that the user before left
    /// behind.
    fn store_of_one(&self) -> impl Future<Output = FencedStore<Self::Db>> + Send;

    /// The quote around the names of tables and columns.
    const QUOTE: char = '"';

    /// Executes a statement, which is not prepared. Returns the number of affected rows.
    fn execute(
        connection: &mut <Self::Db as Storage>::Session,
        statement: &str,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Adds to the balance of account 42 on a connection without a transaction.
    fn add_by_itself(
        connection: &mut <Self::Db as Storage>::Session,
        amount: i64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send {
        Self::add(connection, amount)
    }

    /// `UPDATE accounts SET balance = balance + $amount WHERE id = $account`, as a single write.
    fn add_at_once(
        store: &FencedStore<Self::Db>,
        grant: &Sequencer,
        account: i64,
        amount: i64,
    ) -> impl Future<Output = Result<Executed, FenceError>> + Send;

    /// Everything in the tables of fenced-store, as text.
    fn dump(&self) -> impl Future<Output = String> + Send;

    /// The changes by administrators, in their order: action, resource, tokens before and after,
    /// issuers before and after, reason.
    fn administration(&self) -> impl Future<Output = Vec<String>> + Send;

    /// All triggers, in an order that does not change.
    fn triggers(&self) -> impl Future<Output = Vec<String>> + Send;

    /// Deletes the mark by hand, which no operator should do.
    fn delete_mark(&self, resource: &ResourceName) -> impl Future<Output = ()> + Send;
}

/// The columns of [`SqlHarness::administration`] as a line.
pub(crate) type Deed = (
    String,
    Option<String>,
    Option<i64>,
    Option<i64>,
    String,
    String,
    String,
);

pub(crate) fn line_of((action, resource, from, to, old, new, reason): Deed) -> String {
    format!("{action} {resource:?} {from:?} {to:?} {old} {new} {reason}")
}

/// A world in which the store is ready.
pub(crate) async fn fresh<H: Harness>() -> H {
    H::fresh().await
}

/// A database with the tables of fenced-store.
pub(crate) async fn migrated<H: SqlHarness>() -> H {
    let world = H::unmigrated().await;
    world.to_migrate().migrate().await.unwrap();
    world
}

/// A world in which the store is ready, and a grant of account 42 that was claimed in it.
pub(crate) async fn claimed<H: Harness>() -> (H, Sequencer) {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    (world, grant)
}

/// An error of the store is of this kind: `assert_kind!(error, Stale)`, with a message if it is
/// not.
macro_rules! assert_kind {
    ($error:expr, $kind:ident) => {
        crate::rule::assert_kind!($error, $kind, "another kind was expected")
    };
    ($error:expr, $kind:ident, $($more:tt)+) => {
        assert!(
            matches!($error, fenced_store::FenceError::$kind { .. }),
            "{:?}: {}",
            $error,
            format_args!($($more)+)
        )
    };
}
pub(crate) use assert_kind;

/// The same store, for which every token is plausible.
pub(crate) fn trusting<H: Harness>(world: &H) -> FencedStore<H::Db> {
    world
        .store()
        .clone()
        .plausibility(Plausibility::unchecked())
}

pub(crate) async fn balance<H: Harness>(world: &H) -> i64 {
    H::balance(&mut *to_read(world.store()).await.unwrap()).await
}

/// Adds 1 to the balance in a fenced transaction.
pub(crate) async fn fenced_add<H: Harness>(world: &H, grant: &Sequencer) -> Result<(), FenceError> {
    let mut tx: FencedTx<H::Db> = world.store().begin(grant).await?;
    H::add(&mut tx, 1).await?;
    tx.commit().await.map(drop)
}

pub(crate) async fn high_water<H: Harness>(world: &H, resource: &str) -> Option<u64> {
    let resource = ResourceName::new(resource).unwrap();
    let mark = world.store().high_water(&resource).await.unwrap();
    mark.map(|mark| mark.token().get())
}

/// A grant of a fresh holder.
pub(crate) fn grant(resource: &str, number: u64) -> Sequencer {
    grant_by("redis", resource, number)
}

pub(crate) fn grant_by(issuer: &str, resource: &str, number: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new(issuer).unwrap(),
        ResourceName::new(resource).unwrap(),
        token(number),
        Holder::random(),
    )
}

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// One named test per case, so that a failure has a name and hides no other. A case that is missing
/// here is dead code, which does not get past clippy.
macro_rules! rule_cases {
    ($harness:ty) => {
        store_cases!($harness);
        rule_cases!($harness:
            stale_holder_cannot_begin,
            a_refused_begin_leaves_a_usable_connection,
            refused_first_claim_leaves_nothing,
            claim_on_a_stray_shuts_the_older_holder_out,
            a_transaction_that_was_ended_inside_has_no_receipt,
            a_rolled_back_savepoint_takes_those_inside_with_it,
            settling_changes_nothing,
            settling_without_a_mark_does_not_claim,
            a_write_that_would_be_refused_is_reported_and_stored,
            a_store_with_a_protected_table_does_not_observe,
            a_mark_that_the_store_forgot_is_lost,
            a_stale_one_among_several_refuses_all,
            the_same_resource_twice_is_refused_unsent,
            an_acquisition_of_several_that_is_dropped_at_any_await_leaves_nothing,
            single_write_is_stored_and_has_a_receipt,
            single_write_of_a_stale_holder_is_refused,
            single_write_of_other_grants_is_refused,
            single_write_that_fails_stores_nothing,
            single_write_may_enter_several_resources,
            seal_hands_the_store_over,
            seal_again_changes_nothing,
            seals_at_the_same_time_agree,
            seal_of_an_empty_store_sets_the_issuer,
            a_later_seal_tells_what_an_earlier_one_has_left,
            a_mark_is_not_put_out_of_reach_by_mistake,
            a_handover_shuts_the_old_service_out,
            the_new_service_is_lifted_by_the_first_claim_that_is_refused,
            a_handover_goes_back,
            a_handover_dropped_at_any_await_is_finished_or_turned_back,
            a_handover_that_cannot_be_changes_nothing,
            a_planned_handover_changes_nothing,
            a_handover_goes_on_past_what_is_held_up,
            a_new_service_that_cannot_take_over_is_an_error_before_anything_is_changed,
            an_error_after_the_beginning_does_not_say_that_nothing_was_changed,
            reset_sets_the_mark_that_it_expects,
            reset_waits_for_open_transactions,
            a_forgotten_mark_leaves_a_floor,
            a_mark_that_stays_is_not_below_the_floor,
            a_mark_that_is_young_or_ahead_or_in_use_stays,
            a_store_whose_tokens_are_no_times_is_refused,
            no_mark_is_forgotten_within_the_longest_hold,
            a_mark_that_was_refreshed_is_young,
            a_handover_chooses_above_the_floor,
            an_operator_lowers_the_floor,
            no_token_goes_back_while_marks_are_forgotten,
            begin_can_be_dropped_at_every_await,
            commit_can_be_dropped_at_every_await,
            rollback_can_be_dropped_at_every_await,
            claim_can_be_dropped_at_every_await,
            settle_can_be_dropped_at_every_await,
            a_single_write_can_be_dropped_at_every_await,
            high_water_can_be_dropped_at_every_await,
            a_statement_can_be_dropped_at_every_await,
            a_savepoint_can_be_dropped_at_every_await,
            protect_can_be_dropped_at_every_await,
            migrate_can_be_dropped_at_every_await,
            the_store_does_what_the_model_says,
            no_secret_in_errors_or_tables,
            protected_table_refuses_unfenced_writes,
            protected_rows_take_writes_of_their_resource,
            a_row_moves_between_resources_that_are_both_entered,
            a_whole_table_is_one_resource,
            a_fence_ends_with_its_transaction,
            the_commit_of_a_transaction_that_was_ended_clears_its_note_away,
            protected_rows_go_to_the_next_holder,
            protecting_again_changes_nothing_or_replaces,
            hostile_names_of_tables_and_columns_are_names,
            a_table_that_cannot_be_protected_is_named,
            migrations_run_again_and_at_once,
            the_schema_has_to_be_the_one_that_this_build_needs,
        );
    };
    ($harness:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                rule::$case::<$harness>().await;
            }
        )*
    };
}
pub(crate) use rule_cases;

/// The cases that use no SQL.
macro_rules! store_cases {
    ($harness:ty) => {
        store_cases!($harness:
            duplicate_token_is_refused,
            unclaimed_grant_cannot_begin,
            foreign_issuer_is_refused,
            stale_claim_does_not_wait_for_the_live_holder,
            claim_waits_for_the_older_holder_and_gives_up_busy,
            concurrent_claims_leave_the_greatest,
            concurrent_first_claims_leave_one_issuer,
            mark_survives_rollback_and_drop,
            settling_waits_for_an_open_transaction,
            a_stale_holder_gets_an_error_when_it_settles,
            hostile_names_are_names,
            extreme_tokens_fit,
            implausible_token_is_not_claimed,
            several_resources_share_a_transaction,
            resources_are_entered_in_the_order_of_their_names,
            either_order_of_names_goes_with_claims,
            several_are_locked_and_claimed_and_entered_by_one_transaction,
            several_are_not_claimed_unless_all_were_acquired,
            a_lock_service_behind_the_store_is_lifted_for_each_of_several,
            a_claim_that_is_refused_gives_all_of_several_back,
            one_stale_grant_among_several_guards_refuses_all,
            in_either_order_of_names_several_are_had_in_turn,
            busy_work_is_done_again,
            a_final_error_is_not_followed_by_another_try,
        );
    };
    ($harness:ty: $($case:ident),* $(,)?) => {
        rule_cases!($harness: $($case),*);
    };
}
pub(crate) use store_cases;
