-- The reason why this role must not use our schemas: code that another role has put there would run
-- with the rights of this one.
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT n.nspname, CASE
    WHEN u.rolsuper AND NOT o.rolsuper THEN
      format('it belongs to %I, whose code a superuser must not run: log in as that role',
             o.rolname)
    WHEN c.relkind <> 'r' OR c.relrowsecurity THEN
      format('_migrations is no table or has row security, which no migration makes: ask %I why',
             o.rolname)
    WHEN c.relowner <> o.oid THEN
      format('_migrations belongs to %I, and the schema to %I: ask both why',
             pg_get_userbyid(c.relowner), o.rolname)
  END AS reason
FROM pg_namespace n
  JOIN pg_roles o ON o.oid = n.nspowner
  JOIN pg_roles u ON u.rolname = current_user
  LEFT JOIN pg_class c
    ON c.relnamespace = n.oid AND n.nspname = 'fenced' AND c.relname = '_migrations'
WHERE n.nspname IN ('fenced', 'fenced_guards')
  AND (u.rolsuper AND NOT o.rolsuper OR c.relkind <> 'r' OR c.relrowsecurity OR c.relowner <> o.oid)
