//! Functions that run with the rights of their owner find no object of their caller, because they
//! have a search path of their own, or because every name in them is qualified.

use std::{future::IntoFuture, time::Duration};

use e2e::servers::until;
use fenced_jobs::JobSlots;
use fenced_store::{
    FencedStore, PgFencedStore, Rights,
    admin::{Reason, Reset},
};
use sqlx::{Executor, postgres::PgPoolOptions};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, balance, by_row, fresh, grant, token},
};

/// The functions without a search path of their own. Every transaction or cycle calls them.
const QUALIFIED: [&str; 6] = [
    "acquire",
    "begin_fenced",
    "begin_fenced_fast",
    "check_row_write",
    "note_fence",
    "release",
];

/// The functions that these functions call, and that have no search path of their own, either.
const CALLED: [&str; 9] = [
    "claim_now",
    "is_elsewhere",
    "kept_digest",
    "lock_service_key",
    "raise_mark",
    "resource_lock_key",
    "resource_of",
    "token_of",
    "try_lock_lease",
];

/// For the types that we use, the schema `trap` has all functions and operators of the catalog.
/// `trap_types` has types of the same names that take no value. All of these objects fail. (There
/// are none for numbers of objects, because sqlx uses these to look types up, unqualified, and with
/// the rights of the caller.)
const TRAPS: &str = r#"
    CREATE SCHEMA trap;
    CREATE SCHEMA trap_types;
    DO $$
    DECLARE
        ours regtype[] := '{text,bigint,integer,boolean,timestamptz,regclass}';
        theirs record;
        arguments text;
        springs text := 'LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''sprung''''; END''';
    BEGIN
        FOR theirs IN
            SELECT o.oid, o.oprname, format_type(o.oprleft, NULL) AS l,
                   format_type(o.oprright, NULL) AS r, format_type(o.oprresult, NULL) AS result
            FROM pg_operator o
            WHERE o.oprkind = 'b' AND o.oprleft = ANY (ours) AND o.oprright = ANY (ours)
        LOOP
            EXECUTE format('CREATE OR REPLACE FUNCTION trap.operator_%s(%s, %s) RETURNS %s %s',
                           theirs.oid, theirs.l, theirs.r, theirs.result, springs);
            EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %s)',
                           theirs.oprname, theirs.l, theirs.r, 'trap.operator_' || theirs.oid);
        END LOOP;
        FOR theirs IN
            SELECT f.proname, oidvectortypes(f.proargtypes) AS arguments,
                   format_type(f.prorettype, NULL) AS result
            FROM pg_proc f
            WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.prokind = 'f'
              AND f.prorettype = ANY (ours || '{void,json}'::regtype[]) AND NOT f.proretset
              AND NOT EXISTS (SELECT FROM unnest(f.proargtypes) t WHERE t <> ALL (ours::oid[]))
        LOOP
            EXECUTE format('CREATE OR REPLACE FUNCTION trap.%I(%s) RETURNS %s %s',
                           theirs.proname, theirs.arguments, theirs.result, springs);
        END LOOP;
        FOR number IN 1..6 LOOP
            arguments := array_to_string(array_fill('text'::text, ARRAY[number]), ', ');
            EXECUTE format('CREATE OR REPLACE FUNCTION trap.concat(%s) RETURNS text %s',
                           arguments, springs);
            EXECUTE format('CREATE OR REPLACE FUNCTION trap.format(%s) RETURNS text %s',
                           arguments, springs);
        END LOOP;
        -- Which the catalog does not have: another operator is found for these types there.
        EXECUTE 'CREATE FUNCTION trap.times(numeric, integer) RETURNS numeric ' || springs;
        CREATE OPERATOR trap.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = trap.times);
        CREATE DOMAIN trap_types.text AS pg_catalog.text CHECK (false);
        CREATE DOMAIN trap_types.refcursor AS pg_catalog.refcursor CHECK (false);
    END $$;
"#;

/// A store whose sessions find the traps of these schemas before anything else.
async fn among_traps(world: &PostgresServer, schemas: &str) -> PgFencedStore {
    let path = format!("{schemas},pg_catalog");
    let options = world.options().options([("search_path", path)]);
    let pool = PgPoolOptions::new().max_connections(2);
    FencedStore::new(pool.connect_with(options).await.unwrap())
}

/// A URL whose sessions find the traps, but not the types, because sqlx looks up the type of an
/// argument.
fn url_among_traps(world: &PostgresServer) -> String {
    let path = "trap%2Cpg_catalog";
    let joint = if world.url().contains('?') { '&' } else { '?' };
    format!("{}{joint}options[search_path]={path}", world.url())
}

/// All requests of a client run with the rights of its role. But the database's clock decides
/// whether an old copy of a request is good, and a schema in front could forge that clock.
/// Catches: a statement of ours that calls the first function in the search path.
#[tokio::test]
async fn the_requests_of_a_client_are_answered_by_the_catalog_alone() {
    let world: PostgresServer = fresh().await;
    world.store().pool().execute(TRAPS).await.unwrap();
    let locks = palisade::connect(url_among_traps(&world)).await.unwrap();
    let guard = locks.acquire("r").metadata("m").await.unwrap();
    let waits = locks.acquire("r").wait(Duration::from_secs(30));
    let turn = async {
        until("it waits", async || {
            locks.inspect("r").await.unwrap().waiters == Some(1)
        })
        .await;
        guard.release().await.unwrap();
    };
    let (next, ()) = tokio::join!(waits.into_future(), turn);
    let next = next.unwrap();
    assert_eq!(locks.list().await.unwrap().len(), 1);
    locks.force_release("r").await.unwrap();
    drop(next);

    let store = among_traps(&world, "trap,trap_types").await;
    store.check(Rights::ClaimAndWrite).await.unwrap();
    store.migrate().await.unwrap();
    let own = grant("job:j", 33);
    store.claim(&own).await.unwrap();
    store.job_slot("j", "s").await.unwrap();
    let (resource, reason) = (own.resource().clone(), Reason::new("why").unwrap());
    let reset = Reset::raise(resource, own.token(), token(34), reason).unwrap();
    store.admin().reset_high_water(&reset).await.unwrap();
}

const ADD: &str = "UPDATE public.accounts SET balance = balance OPERATOR(pg_catalog.+) 1
    WHERE id OPERATOR(pg_catalog.=) 42";

/// Catches: one of our functions that calls a trap of its caller.
#[tokio::test]
async fn a_hostile_search_path_does_not_matter() {
    let world: PostgresServer = fresh().await;
    world.store().pool().execute(TRAPS).await.unwrap();
    let store = among_traps(&world, "trap,trap_types").await;
    for naive in [
        "SELECT current_setting('transaction_isolation')",
        "SELECT 'a'::pg_catalog.text = 'b'",
        "SELECT hashtextextended('a', 4711)",
        "SELECT concat('a', 'b')",
        "SELECT CAST('a' AS text)",
    ] {
        let error = store.pool().execute(naive).await.unwrap_err().to_string();
        let sprung = error.contains("sprung") || error.contains("check constraint");
        assert!(sprung, "{naive}: {error}");
    }

    world.store().protect(&by_row()).await.unwrap();
    let grants = [grant("account:42", 33), grant("account:43", 34)];
    for grant in &grants {
        store.claim(grant).await.unwrap();
    }
    // For a single write sqlx looks types up.
    let single = among_traps(&world, "trap").await;
    for _ in 1..=8 {
        let mut tx = store.begin(&grants[0]).and(&grants[1]).await.unwrap();
        tx.execute(ADD).await.unwrap();
        tx.commit().await.unwrap();
        let begin = single.begin(&grants[0]).and(&grants[1]);
        begin.execute(sqlx::query(ADD)).await.unwrap();
    }
    assert_eq!(balance(&world).await, 116);
    store.settle(&grants[0]).await.unwrap();
    let stale = store.begin(&grant("account:42", 32)).await.unwrap_err();
    assert!(stale.is_fenced(), "{stale:?}");
    let unfenced = store.pool().execute(ADD).await.unwrap_err();
    let code = unfenced.as_database_error().unwrap().code();
    assert_eq!(code.as_deref(), Some("FN010"), "{unfenced}");
}

/// The test above calls every function without a search path, but does not take every path in it.
/// Catches: an unqualified name on a path that no test takes.
#[tokio::test]
async fn functions_without_a_search_path_of_their_own_are_qualified() {
    let world: PostgresServer = fresh().await;
    let sources: Vec<(String, String)> = sqlx::query_as(
        "SELECT proname::text, prosrc FROM pg_proc
         WHERE pronamespace IN ('fenced'::regnamespace, 'fenced_guards'::regnamespace)
           AND (prosecdef OR proname = ANY ($1))
           AND NOT coalesce(proconfig @> '{\"search_path=pg_catalog, pg_temp\"}', false)
         ORDER BY proname",
    )
    .bind(&CALLED[..])
    .fetch_all(world.store().pool())
    .await
    .unwrap();
    let mut listed = [&QUALIFIED[..], &CALLED].concat();
    listed.sort_unstable();
    let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, listed);
    for (name, source) in &sources {
        assert_eq!(unqualified(source), Vec::<String>::new(), "{name}");
    }
    assert_eq!(unqualified("if x = 1 then"), ["="]);
    assert_eq!(
        unqualified("set a = 1, b = (c = 2) where d = 3"),
        ["=", "="]
    );
    assert_eq!(
        unqualified("perform concat('=', y::text)"),
        ["concat", "text"]
    );
}

/// The called functions, the types and the operators whose schema is not named, except names that
/// are found without a schema.
fn unqualified(source: &str) -> Vec<String> {
    const WORDS: [&str; 10] = [
        "if", "and", "operator", "where", "coalesce", "from", "or", "greatest", "values", "select",
    ];
    let mut found = Vec::new();
    // Comments and literals are left out.
    let lines = source.lines().map(|line| line.split("--").next().unwrap());
    let code = lines.collect::<Vec<_>>().join("\n");
    let code: String = code.split('\'').step_by(2).collect::<Vec<_>>().join("''");
    let mut before = String::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
    let mut rest = code.as_str();
    // Whether this is between SET and the next clause of an UPDATE, and inside how many brackets.
    let (mut assigns, mut depth) = (false, 0);
    while let Some(first) = rest.chars().next() {
        let length = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let is_operator = |c: char| "+-*/<>=~!@#%^&|`?:".contains(c);
        let token = if is_name(first) {
            &rest[..length(&is_name)]
        } else if is_operator(first) {
            &rest[..length(&is_operator)]
        } else {
            &rest[..first.len_utf8()]
        };
        rest = &rest[token.len()..];
        match token {
            "set" => (assigns, depth) = (true, 0),
            "from" | "where" | "returning" | ";" => assigns = false,
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        if is_name(first) {
            let called = rest.trim_start().starts_with('(') && !WORDS.contains(&token);
            if (called || before == "::") && !token.contains('.') {
                found.push(token.to_owned());
            }
            if ["between", "in", "any", "like", "distinct"].contains(&token) {
                found.push(token.to_owned());
            }
        } else if is_operator(first) && ![":=", "::"].contains(&token) {
            let is_assignment = token == "=" && assigns && depth == 0;
            // As in operator(pg_catalog.=).
            if !is_assignment && before != "pg_catalog." {
                found.push(token.to_owned());
            }
        }
        if !token.trim().is_empty() {
            token.clone_into(&mut before);
        }
    }
    found
}
