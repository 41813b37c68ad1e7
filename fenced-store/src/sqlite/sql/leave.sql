-- Forgets what transactions have entered that are over. The condition keeps SQLite from emptying
-- the table as a whole, which would write its page even if it is empty already.
DELETE FROM fenced_entered WHERE true
