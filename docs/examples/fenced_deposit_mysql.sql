-- A fenced deposit from the client of MariaDB or MySQL: mariadb DATABASE <fenced_deposit_mysql.sql
-- Each CALL is a transaction of its own.

SET time_zone = '+00:00', innodb_lock_wait_timeout = 2, lock_wait_timeout = 2;
SET @holder = HEX(RANDOM_BYTES(16)), @client = UUID();

-- 'granted'; or 'held', without a place in the queue. A wait of NULL would take one. It is claimed
-- in the same step: from here on every older holder is refused.
CALL fenced_acquire('account:1', @holder, 'try-1', 30000, 0, @client, 0, NULL, NULL, NULL, 'mysql');

-- As long as the work takes, and well before the lease runs out.
CALL fenced_renew(JSON_ARRAY(JSON_OBJECT(
  'resource', 'account:1', 'token', @fenced_token, 'holder', @holder, 'ttl_ms', 30000)));

START TRANSACTION;
-- Writes only under the mark of this holder, and keeps claims out until the COMMIT.
UPDATE account SET balance = balance + 10 WHERE id = 1 AND EXISTS (
  SELECT 1 FROM fenced_high_water_mark
  WHERE resource = 'account:1' AND token = @fenced_token AND issuer = 'mysql'
    AND holder = SHA2(@holder, 256) LOCK IN SHARE MODE);
COMMIT;

CALL fenced_release('account:1', @fenced_token, @holder, TRUE);
