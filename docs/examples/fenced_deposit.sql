-- A fenced deposit from psql: psql --set ON_ERROR_STOP=1 --file fenced_deposit.sql URL
-- Each statement outside BEGIN and COMMIT is a transaction of its own.

SELECT md5(random()::text) AS holder \gset

-- 'granted'; or 'held', without a place in the queue. wait_ms => NULL would take one.
SELECT outcome, token FROM fenced.acquire('account:1', :'holder', 'try-1', 30000) \gset
\echo :outcome

-- Once for each grant, and before the first read. From here on every older holder is refused.
SELECT fenced.claim('account:1', :token, :'holder', 'postgres');

-- As long as the work takes, and well before the lease runs out.
SELECT outcome FROM fenced.renew(ARRAY['account:1'], ARRAY[:token::bigint], ARRAY[:'holder'],
                                 ARRAY[30000::bigint]);

BEGIN;
SELECT fenced.begin_fenced('account:1', :token, :'holder', 'postgres');
UPDATE account SET balance = balance + 10 WHERE id = 1;
COMMIT;

SELECT outcome FROM fenced.release('account:1', :token, :'holder');
