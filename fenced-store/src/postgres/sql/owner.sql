-- The reason why a superuser must not migrate: the schema belongs to another role.
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT format('it belongs to %I: migrate as that role', pg_get_userbyid(n.nspowner))
FROM pg_namespace n JOIN pg_roles u ON u.rolname = current_user
WHERE n.nspname = 'fenced' AND u.rolsuper AND n.nspowner <> u.oid
