-- Which migrations have been applied, for a role that may create nothing: here a right on the
-- migrations table itself, which is given to users by name.
DO 0;
