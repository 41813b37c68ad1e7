-- Which migrations have been applied, for a role that may create nothing. Here there are no roles:
-- whoever can open the file can read the migrations table.
SELECT 0;
