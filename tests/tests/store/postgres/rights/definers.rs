//! The functions that run with the rights of their owner: their list, their callers, and a check
//! that they use no object of their caller.

use std::collections::BTreeMap;

use sqlx::{Executor, Row};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, by_row, fresh},
};

/// Every function of ours that runs with the rights of its owner. Its definition says which objects
/// it may touch. Before you add a function here, check all arguments and objects that its caller
/// can give it.
const DEFINERS: &[(&str, &[&str])] = &[
    (
        "marks, by the rule",
        &[
            "begin_fenced",
            "begin_fenced_fast",
            "claim",
            "high_water",
            "note_fence",
            "refresh_mark",
            "settle",
        ],
    ),
    ("marks, which triggers read", &["check_row_write"]),
    (
        "leases, waiters and tombstones, by the rule",
        &[
            "acquire",
            "acquire_together",
            "cancel",
            "forget_tombstones",
            "leases",
            "look",
            "release",
            "release_hold",
            "renew",
        ],
    ),
    (
        "the tables of jobs, under the fence of the job",
        &[
            "fail_job",
            "forget_job",
            "forget_jobs_below",
            "job_slot",
            "job_slots",
            "newest_job",
            "retry_job",
            "run_job",
            "save_job",
        ],
    ),
];

/// The functions that only the owner may call, until the owner grants the right.
const OF_OPERATORS: &[&str] = &[
    "current_issuer",
    "drop_unused_guards",
    "force_release",
    "forget_leases",
    "forget_marks",
    "handover_status",
    "make_guard",
    "mark_floor",
    "marks_of_others",
    "reset_floor",
    "reset_high_water",
    "resources_of_issuer",
    "seal_floor",
    "seal_issuer",
    "seal_mark",
    "state_longest_hold",
];

struct Function {
    name: String,
    is_public: bool,
    /// Whether the function has a search path of its own.
    is_pinned: bool,
    is_definer: bool,
    is_trigger: bool,
    /// The types of its arguments that any role can create.
    foreign: Option<String>,
}

async fn functions(world: &PostgresServer) -> Vec<Function> {
    // A protected table has functions that were made for it.
    world.store().protect(&by_row()).await.unwrap();
    let rows = world.store().pool().fetch_all(
        "SELECT p.proname::text AS name,
                has_function_privilege('public', p.oid, 'EXECUTE') AS is_public,
                coalesce(p.proconfig @> '{\"search_path=pg_catalog, pg_temp\"}', false)
                  AS is_pinned,
                p.prosecdef AS is_definer, p.prorettype = 'trigger'::regtype AS is_trigger,
                (SELECT string_agg(a::regtype::text, ', ') FROM unnest(p.proargtypes) a
                   JOIN pg_type t ON t.oid = a
                   WHERE t.typnamespace NOT IN ('pg_catalog'::regnamespace, 'fenced'::regnamespace)
                     OR t.typtype = 'p') AS foreign
         FROM pg_proc p
         WHERE p.pronamespace IN ('fenced'::regnamespace, 'fenced_guards'::regnamespace)
         ORDER BY 1",
    );
    let function = |row: &sqlx::postgres::PgRow| Function {
        name: row.get("name"),
        is_public: row.get("is_public"),
        is_pinned: row.get("is_pinned"),
        is_definer: row.get("is_definer"),
        is_trigger: row.get("is_trigger"),
        foreign: row.get("foreign"),
    };
    rows.await.unwrap().iter().map(function).collect()
}

/// Catches: a new function with the rights of its owner, without a decision about its callers.
#[tokio::test]
async fn every_function_with_the_rights_of_its_owner_is_listed() {
    let world: PostgresServer = fresh().await;
    let mut listed: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, names) in DEFINERS {
        listed.extend(names.iter().map(|name| (*name, true)));
    }
    listed.extend(OF_OPERATORS.iter().map(|name| (*name, false)));
    let functions = functions(&world).await;
    let definers = functions.iter().filter(|function| function.is_definer);
    let found: BTreeMap<_, _> = definers
        .map(|function| (function.name.as_str(), function.is_public))
        .collect();
    assert_eq!(found, listed);
}

/// A type, or an operator of a type, may belong to the caller. A writer calls the functions of
/// triggers, which run with the writer's rights.
/// Catches: code of a caller in a function with other rights.
#[tokio::test]
async fn a_function_with_the_rights_of_its_owner_takes_no_type_of_its_caller() {
    let world: PostgresServer = fresh().await;
    let functions = functions(&world).await;
    assert!(functions.iter().any(|function| function.is_trigger));
    for function in functions {
        let Function { name, .. } = &function;
        if function.is_definer {
            assert_eq!(function.foreign, None, "{name}");
        }
        if function.is_trigger {
            assert!(!function.is_definer && function.is_pinned, "{name}");
        }
    }
}
