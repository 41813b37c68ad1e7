//! An attack by a role that may, by a mistake of the owner, create functions in our schema.

use sqlx::{AssertSqlSafe, Executor};

use crate::{
    postgres::roles::Roles,
    rule::{Harness, by_row},
};

/// For each of our functions, other functions of the same name. One of their arguments has another
/// type that a call might have: a literal, a number, a domain, the number of a table.
const OVERLOADS: &str = r"
    DO $do$
    DECLARE
      ours record;
      types oid[];
      kind oid;
      made integer := 0;
    BEGIN
      FOR ours IN
        SELECT f.oid, f.pronamespace::regnamespace AS schema, f.proname, f.prokind,
               f.proargtypes::oid[] AS types, pg_get_function_result(f.oid) AS result
        FROM pg_proc f
        WHERE f.pronamespace IN ('fenced'::regnamespace, 'fenced_guards'::regnamespace)
          AND f.prorettype <> 'trigger'::regtype AND f.pronargs > 0
      LOOP
        FOR place IN 0 .. cardinality(ours.types) LOOP
          FOR kind IN
            SELECT t.oid FROM pg_type t
            WHERE t.oid = ANY ('{text,varchar,name,int2,int4,int8,numeric,float8,bool,oid,regclass,
                                 json,timestamptz,interval,text[],int4[],int8[]}'::regtype[]::oid[])
               OR t.typnamespace = 'fenced'::regnamespace AND t.typtype = 'd'
          LOOP
            types := ours.types;
            IF place = 0 THEN
              types := array_fill(kind, ARRAY[cardinality(types)]);
            ELSE
              types[place - 1] := kind;
            END IF;
            BEGIN
              EXECUTE format(
                'CREATE %s %s.%I(%s) %s LANGUAGE plpgsql
                   AS ''BEGIN RAISE EXCEPTION ''''sprung''''; END''',
                CASE ours.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
                ours.schema, ours.proname,
                (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n)
                   FROM unnest(types) WITH ORDINALITY AS a (t, n)),
                CASE ours.prokind WHEN 'p' THEN '' ELSE 'RETURNS ' || ours.result END);
              made := made + 1;
            EXCEPTION WHEN duplicate_function OR insufficient_privilege
                        OR invalid_function_definition THEN NULL;
            END;
          END LOOP;
        END LOOP;
      END LOOP;
      RAISE NOTICE 'made %', made;
    END $do$;
";

/// Each call names the exact types, although no application has to do this. The first function is
/// chosen by the application, with its own rights, so this choice is not tested.
const CALLS: &[&str] = &[
    "SELECT fenced.claim('account:42'::text, 33::bigint, 'h'::text, 'redis'::text, 1000::integer)",
    "SELECT fenced.settle('account:42'::text, 33::bigint, 'h'::text, 'redis'::text, 1000::integer)",
    "BEGIN;
     SELECT fenced.begin_fenced('account:42'::text, 33::bigint, 'h'::text, 'redis'::text,
                                1000::integer, 1000::integer, 1000::integer);
     UPDATE accounts SET balance = balance + 1 WHERE id = 42;
     COMMIT",
    "BEGIN ISOLATION LEVEL REPEATABLE READ;
     SELECT fenced.begin_fenced('account:42'::text, 33::bigint, 'h'::text, 'redis'::text,
                                1000::integer, 1000::integer, 1000::integer);
     UPDATE accounts SET balance = balance + 1 WHERE id = 42;
     COMMIT",
    "CALL fenced.begin_fenced_fast('account:42'::text, 33::bigint, 'h'::text, 'redis'::text,
                                   1000::integer, 1000::integer, 1000::integer, 'tx'::text); BEGIN;
     COMMIT",
    "SELECT fenced.note_fence('account:42'::text, 33::bigint, 'h'::bytea, 'redis'::text)",
    "SELECT ROW('account:42', 33, 'h', 'redis', 1000)::fenced.statement_grant
       ::fenced.statement_fence",
    "SELECT fenced.high_water('account:42'::text)",
    "SELECT fenced.claim('job:j'::text, 5::bigint, 'h'::text, 'redis'::text, 1000::integer)",
    "BEGIN;
     SELECT fenced.begin_fenced('job:j'::text, 5::bigint, 'h'::text, 'redis'::text,
                                NULL::integer, NULL::integer, NULL::integer);
     SELECT fenced.save_job('j'::text, '2026-01-01T00:00:00Z'::text, 1::bigint, 'p'::text);
     SELECT fenced.fail_job('j'::text, '2026-01-02T00:00:00Z'::text, 'e'::text, 1::bigint);
     SELECT fenced.run_job('j'::text, '2026-01-01T00:00:00Z'::text);
     SELECT fenced.retry_job('j'::text, '2026-01-02T00:00:00Z'::text);
     SELECT fenced.forget_job('j'::text, '2026-01-02T00:00:00Z'::text);
     SELECT fenced.forget_jobs_below('j'::text, '2026-01-01T00:00:00Z'::text, true);
     COMMIT",
    "SELECT fenced.job_slot('j'::text, 's'::text)",
    "SELECT fenced.newest_job('j'::text)",
    "SELECT fenced.job_slots(''::text, ''::text, 10::bigint)",
    "SELECT fenced.acquire('r'::text, 'h'::text, 'a'::text, 60000::bigint, 0::bigint, ''::text,
       0::bigint, NULL::text, NULL::integer, NULL::timestamptz, 'redis'::text)",
    "SELECT fenced.acquire('r'::text, 'h'::text, 'b'::text, 60000::bigint, 0::bigint, ''::text,
       0::bigint, NULL::text, NULL::integer, NULL::timestamptz, 'redis'::text)",
    "SELECT fenced.acquire('r'::text, 'other'::text, 'a'::text, 60000::bigint, 1000::bigint,
       'c'::text, 0::bigint, NULL::text, 10::integer, NULL::timestamptz, NULL::text)",
    "SELECT 1 / count(*) FROM fenced.look('c'::text, '{a}'::text[])",
    "SELECT fenced.release_hold('r'::text, (SELECT token FROM fenced.leases('r'::text)), 'h'::text,
       'b'::text)",
    "SELECT fenced.renew('{r}'::text[], ARRAY[(SELECT token FROM fenced.leases('r'::text))],
       '{h}'::text[], '{1000}'::bigint[])",
    "SELECT 1 / (outcome = 'released')::integer FROM fenced.release('r'::text,
       (SELECT token FROM fenced.leases('r'::text)), 'h'::text, true)",
    "SELECT fenced.release('r'::text, 1::bigint, 'h'::text, true)",
    // The short ways of a release, and of the acquire after it.
    "SELECT fenced.acquire('quiet'::text, 'h'::text, 'a'::text, 60000::bigint)",
    "SELECT 1 / (outcome = 'released')::integer FROM fenced.release('quiet'::text,
       (SELECT token FROM fenced.leases('quiet'::text)), 'h'::text, false)",
    "SELECT 1 / (outcome = 'granted' AND claimed)::integer
       FROM fenced.acquire('quiet'::text, 'g'::text, 'a'::text, 60000::bigint, 0::bigint, ''::text,
         0::bigint, NULL::text, NULL::integer, NULL::timestamptz, 'redis'::text)",
    "SELECT fenced.cancel('r'::text, 'other'::text, 'a'::text)",
    "SELECT fenced.acquire_together('{q}'::text[], 'h'::text, 'a'::text, '{60000}'::bigint[],
       '{0}'::bigint[], '{NULL}'::text[], NULL::timestamptz)",
    "SELECT 1 / (outcome = 'ended')::integer
       FROM fenced.force_release('q'::text, (SELECT token FROM fenced.leases('q'::text)))",
    "SELECT fenced.forget_tombstones()",
    "SELECT fenced.reset_high_water('account:42'::text, 33::bigint, 34::bigint, 'why'::text, false,
       1000::integer)",
    "SELECT fenced.seal_issuer('redis'::text, 'new'::text, 'why'::text, 1000::integer)",
    "SELECT fenced.seal_mark('account:42'::text, 'redis'::text, 'new'::text, 99::bigint,
       'why'::text, 1000::integer)",
    "SELECT fenced.refresh_mark('account:42'::text, 33::bigint, 'h'::text, 'redis'::text)",
    "SELECT fenced.state_longest_hold('2 h'::interval)",
    "UPDATE fenced.high_water_mark SET claimed_at = '2020-01-01'",
    "SELECT fenced.forget_leases('2 h'::interval, ''::text, 10::integer)",
    "SELECT fenced.forget_marks('2 h'::interval, 999999999999999::bigint, ''::text, 10::integer)",
    "SELECT fenced.seal_floor('redis'::text, 'new'::text, 100::bigint, 'why'::text)",
    "SELECT fenced.reset_floor(fenced.mark_floor(), 1::bigint, 'why'::text)",
    "SELECT fenced.terminate_older('account:42'::text, 100::bigint, 'new'::text)",
    "SELECT fenced.protect('accounts'::regclass, 'accounts'::text)",
    "SELECT fenced.unprotect('accounts'::regclass)",
];

/// Catches: a call inside our functions that another function would match better.
#[tokio::test]
async fn no_function_beside_ours_is_called_in_its_place() {
    let roles = Roles::as_documented().await;
    let admin = roles.world.store();
    admin.protect(&by_row()).await.unwrap();
    roles
        .as_admin("GRANT CREATE ON SCHEMA fenced, fenced_guards TO app")
        .await;
    let app = roles.store_of("app").await;
    app.pool().execute(sqlx::raw_sql(OVERLOADS)).await.unwrap();
    let made: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%sprung%'
         AND pronamespace = 'fenced'::regnamespace",
    )
    .fetch_one(app.pool())
    .await
    .unwrap();
    assert!(made > 1000, "{made}");
    let sprung = app
        .pool()
        .execute("SELECT fenced.bury('r', 'h', '', 0)")
        .await
        .unwrap_err();
    assert!(!sprung.to_string().contains("permission"), "{sprung}");

    // The caller is a superuser, who may call all functions.
    let mut connection = admin.pool().acquire().await.unwrap();
    for call in CALLS {
        let called = connection
            .execute(sqlx::raw_sql(AssertSqlSafe(*call)))
            .await;
        assert!(called.is_ok(), "{call}: {called:?}");
    }
}
