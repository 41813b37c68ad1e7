-- Which migrations have been applied: the migrations table can be read by whoever has USAGE on this
-- schema, so that a role that may create nothing finds out whether the schema is the one that it
-- needs.
grant select on fenced._migrations to public;
