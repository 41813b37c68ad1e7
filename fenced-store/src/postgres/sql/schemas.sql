-- Makes the missing schemas. Refuses (FN030) a schema that belongs to another role, or in which
-- another role may create or has created: its function could be called in the place of ours, with
-- our rights.
-- detail {"schema", "reason"}
DO $do$
DECLARE
  ours pg_catalog.name;
  reason pg_catalog.text;
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  FOREACH ours IN ARRAY '{fenced,fenced_guards}'::name[] LOOP
    IF NOT EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = ours) THEN
      EXECUTE format('CREATE SCHEMA %I', ours);
    END IF;
    SELECT CASE WHEN n.nspowner <> u.oid THEN
                  format('it belongs to %I: migrate as that role', pg_get_userbyid(n.nspowner))
                WHEN a.grantee IS NOT NULL THEN
                  format('%s may create there: REVOKE CREATE ON SCHEMA %I FROM %1$s',
                         CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                        ELSE quote_ident(pg_get_userbyid(a.grantee)) END, ours)
                WHEN made.name IS NOT NULL THEN
                  format('%s in it belongs to %I: drop what is not ours, and give %I the rest',
                         made.name, pg_get_userbyid(made.owner), u.rolname)
           END
      INTO reason
      FROM pg_namespace n
        JOIN pg_roles u ON u.rolname = current_user
        LEFT JOIN LATERAL (
          SELECT e.grantee FROM aclexplode(n.nspacl) e
            WHERE e.privilege_type = 'CREATE' AND e.grantee <> n.nspowner LIMIT 1) a ON true
        LEFT JOIN LATERAL (
          SELECT m.name, m.owner FROM (
            SELECT c.relname, c.relowner FROM pg_class c WHERE c.relnamespace = n.oid UNION ALL
            SELECT p.proname, p.proowner FROM pg_proc p WHERE p.pronamespace = n.oid UNION ALL
            SELECT t.typname, t.typowner FROM pg_type t WHERE t.typnamespace = n.oid UNION ALL
            SELECT o.oprname, o.oprowner FROM pg_operator o WHERE o.oprnamespace = n.oid
          ) m (name, owner) WHERE m.owner <> n.nspowner LIMIT 1) made ON true
      WHERE n.nspname = ours;
    IF reason IS NOT NULL THEN
      RAISE EXCEPTION USING
        errcode = 'FN030',
        message = format('the schema %s cannot be used: %s', ours, reason),
        detail = json_build_object('schema', ours, 'reason', reason);
    END IF;
  END LOOP;
END $do$;
