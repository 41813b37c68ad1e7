-- Rights that are wider than needed: each right, and the statement that ends it.
SET LOCAL search_path = pg_catalog, pg_temp;
WITH ours AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace n
  WHERE n.nspname IN ('fenced', 'fenced_guards')
), routines AS (
  SELECT p.oid, p.proname, p.proowner, p.proacl, p.prosecdef, o.nspname, o.nspowner
  FROM pg_proc p JOIN ours o ON o.oid = p.pronamespace
), role (oid, name) AS (
  SELECT r.oid, quote_ident(r.rolname) FROM pg_roles r UNION ALL SELECT 0, 'PUBLIC'
)
SELECT format('%s may create in the schema %s, and what it makes there could be called with the '
              'rights of its owner', r.name, o.nspname) AS text,
       format('REVOKE CREATE ON SCHEMA %s FROM %s', o.nspname, r.name) AS change
FROM ours o, aclexplode(o.nspacl) a JOIN role r ON r.oid = a.grantee
WHERE a.privilege_type = 'CREATE' AND a.grantee <> o.nspowner
UNION ALL
SELECT format('the function %s belongs to another role than the schema', f.oid::regprocedure),
       format('DROP ROUTINE %s', f.oid::regprocedure)
FROM routines f WHERE f.proowner <> f.nspowner
UNION ALL
SELECT format('%s belongs to another role than the schema', c.oid::regclass),
       format('ALTER TABLE %s OWNER TO %I, if it is ours', c.oid::regclass,
              pg_get_userbyid(o.nspowner))
FROM pg_class c JOIN ours o ON o.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relowner <> o.nspowner
UNION ALL
SELECT format('%s may call %s, which is for operators', r.name, f.oid::regprocedure),
       format('REVOKE EXECUTE ON ROUTINE %s FROM %s', f.oid::regprocedure, r.name)
FROM routines f, aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a
  JOIN role r ON r.oid = a.grantee
WHERE a.grantee = 0 AND f.proname IN (
  'current_issuer', 'drop_unused_guards', 'force_release', 'forget_leases', 'forget_marks',
  'handover_status', 'make_guard', 'mark_floor', 'marks_of_others', 'reset_floor',
  'reset_high_water', 'resources_of_issuer', 'seal_floor', 'seal_issuer', 'seal_mark')
UNION ALL
SELECT DISTINCT format('the triggers of %s call %s, which an older version has made and which runs '
                       'with the rights of its owner', t.tgrelid::regclass, f.oid::regprocedure),
       format('SELECT fenced.unprotect(%L), and protect it again', t.tgrelid::regclass)
FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
WHERE t.tgname IN ('fenced_guard', 'fenced_guard_truncate')
  AND (f.prosecdef OR f.pronamespace NOT IN (SELECT o.oid FROM ours o WHERE nspname <> 'fenced'))
UNION ALL
SELECT format('%s may write to %s, past the rule', r.name, c.oid::regclass),
       format('REVOKE ALL ON %s FROM %s', c.oid::regclass, r.name)
FROM pg_class c JOIN ours o ON o.oid = c.relnamespace, aclexplode(c.relacl) a
  JOIN role r ON r.oid = a.grantee
WHERE c.relkind IN ('r', 'p') AND a.grantee <> o.nspowner AND a.privilege_type <> 'SELECT'
GROUP BY r.name, c.oid
ORDER BY 1
