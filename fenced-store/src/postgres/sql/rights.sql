-- The rights that this role lacks: the action that it may not do, and the statement that gives it
-- the right. A right on which others depend comes first.
-- {routines} the names of the functions and procedures that it calls
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT lacks.what, format('GRANT %s TO %I', lacks.given, current_user) AS given
FROM pg_namespace n CROSS JOIN LATERAL (
  SELECT 1, 'use the schema fenced', 'USAGE ON SCHEMA fenced'
  WHERE NOT has_schema_privilege(n.oid, 'USAGE')
  UNION ALL
  SELECT 2, 'read fenced._migrations', 'SELECT ON fenced._migrations'
  FROM pg_class c
  WHERE c.relnamespace = n.oid AND c.relname = '_migrations'
    AND NOT has_table_privilege(c.oid, 'SELECT')
  UNION ALL
  SELECT 3, format('call fenced.%I', r.proname), format('EXECUTE ON ROUTINE fenced.%I', r.proname)
  FROM pg_proc r
  WHERE r.pronamespace = n.oid AND r.proname IN ({routines})
    AND NOT has_function_privilege(r.oid, 'EXECUTE')
  UNION ALL
  SELECT 4, format('use the type fenced.%I', t.typname),
         format('USAGE ON DOMAIN fenced.%I', t.typname)
  FROM pg_type t
  WHERE t.typnamespace = n.oid AND t.typname IN ('autocommit', 'statement_fence')
    AND NOT has_type_privilege(t.oid, 'USAGE')
) AS lacks (rank, what, given)
WHERE n.nspname = 'fenced'
ORDER BY lacks.rank, lacks.what
