mod settings;

use std::time::Duration;

use fenced_store::{Dialect, FenceError, FencedStore, NotReady, Rights};
use lock_core::{
    LockManager,
    backend::{Runtime, TokioRuntime},
};
use sqlx::Pool;

use self::settings::Settings;
use super::Findings;
use crate::failure::with_sources;

/// A difference of two clocks that is greater than this is not caused by the delay of the query.
const SKEW_MAX: Duration = Duration::from_secs(1);

/// Examines a database that answers: its version and settings, our tables, the rights of the role,
/// the issuer whose tokens it takes, and its clock.
pub(super) async fn examine<DB: Settings>(
    findings: &mut Findings,
    store: &FencedStore<DB>,
    locks: Option<&LockManager>,
) {
    if let Err(error) = DB::settings(findings, store.pool()).await {
        findings.wrong(error, "let this role read the settings of the server");
    }
    let is_there = tables_and_rights(findings, store).await;
    if is_there {
        wide_rights(findings, store.pool()).await;
    }
    if let (true, Some(locks)) = (is_there, locks) {
        issuer(findings, store, locks).await;
    }
    match DB::seconds(store.pool()).await {
        Ok(now) => clock(findings, now),
        Err(error) => findings.wrong(error, "let this role ask the server for its time"),
    }
}

/// Whether the tables are there.
async fn tables_and_rights<DB: Dialect>(findings: &mut Findings, store: &FencedStore<DB>) -> bool {
    match store.check(Rights::ClaimAndWrite).await {
        Ok(()) => {
            findings.good("the tables of Palisade are there, and this role may claim and write");
            true
        }
        Err(error @ FenceError::NotMigrated { .. }) => {
            findings.wrong(
                error,
                "call FencedStore::migrate as the owner, or apply `palisade migrations print`",
            );
            false
        }
        Err(error @ FenceError::NotReady(NotReady::ReadOnly { .. })) => {
            findings.wrong(
                error,
                "connect to a server that takes writes, or let this role write there",
            );
            true
        }
        Err(error) => {
            findings.wrong(
                with_sources(&error),
                "see docs/operations/upgrade.md, What is checked at the start",
            );
            true
        }
    }
}

async fn wide_rights<DB: Settings>(findings: &mut Findings, pool: &Pool<DB>) {
    match DB::wide_rights(pool).await {
        Ok(wide) => {
            for (text, change) in wide {
                findings.wrong(text, &change);
            }
        }
        Err(error) => findings.wrong(error, "let this role read the catalog"),
    }
}

async fn issuer<DB: Dialect>(
    findings: &mut Findings,
    store: &FencedStore<DB>,
    locks: &LockManager,
) {
    let ours = locks.issuer();
    match store.admin().issuer().await {
        Ok(None) => findings.good(format_args!(
            "no token was claimed yet: the first claim limits the store to tokens of \"{ours}\""
        )),
        Ok(Some(theirs)) => findings.must(
            theirs == *ours,
            format_args!("the store takes tokens of \"{theirs}\"; this lock service is \"{ours}\""),
            "name the lock service as its users do, with --issuer, or hand over with `migrate`",
        ),
        Err(error) => findings.wrong(error, "let this role read the tables of Palisade"),
    }
}

/// Whether the clock of the server and ours agree.
fn clock(findings: &mut Findings, server: f64) {
    let apart = server - TokioRuntime.unix_time().as_secs_f64();
    if apart.abs() < SKEW_MAX.as_secs_f64() {
        findings.good("its clock agrees with the one of this machine");
    } else {
        findings.advice(
            format_args!("its clock is {apart:+.1} s from the one of this machine"),
            "run NTP on both: locks do not depend on clocks, but times of schedules do",
        );
    }
}
