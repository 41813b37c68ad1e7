-- Deletes the notes of transactions that are over. The condition keeps SQLite from clearing the
-- table as a whole, which would write its page even if the table is already empty.
DELETE FROM main.fenced_open_transaction WHERE true
