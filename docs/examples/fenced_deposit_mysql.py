"""Deposits into an account that only the holder of its lock may write.

Needs nothing but a driver of MySQL: python3 fenced_deposit_mysql.py URL AMOUNT
Waits for a line on its standard input between the read and the write.
"""

import json
import secrets
import sys
import time
from urllib.parse import urlsplit

import pymysql

RESOURCE = "account:1"
ISSUER = "mysql"
TTL_MS = 3000
SESSION = "SET time_zone = '+00:00', innodb_lock_wait_timeout = 2, lock_wait_timeout = 2"
ACQUIRE = "CALL fenced_acquire(%s, %s, %s, %s, NULL, %s, 0, NULL, NULL, NULL, %s)"

# Keeps claims out until the commit. There is no row if a newer holder has claimed.
ENTER = """SELECT 1 FROM fenced_high_water_mark WHERE resource = %s AND token = %s
    AND holder = SHA2(%s, 256) AND issuer = %s LOCK IN SHARE MODE"""


def acquire(calls, holder):
    """Waits for the lease, first come, first served; returns its fencing token."""
    client, attempt = secrets.token_hex(16), secrets.token_hex(8)
    while True:
        calls.execute(ACQUIRE, (RESOURCE, holder, attempt, TTL_MS, client, ISSUER))
        outcome, token, left_ms, claimed = calls.fetchone()
        if outcome == "granted" and claimed:
            return token
        if outcome not in ("granted", "waiting"):
            raise RuntimeError(outcome)
        # A look is cheaper than the call. At least every second the call is a sign of life.
        until = time.monotonic() + min(1, (left_ms + 1) / 1000)
        while time.monotonic() < until:
            time.sleep(0.02)
            calls.execute("CALL fenced_look(%s, '')", (client,))
            if any(turn for _, _, _, turn, _, _ in calls.fetchall()):
                break


def main(url, amount):
    to = urlsplit(url)
    connection = pymysql.connect(
        host=to.hostname,
        port=to.port,
        user=to.username,
        password=to.password,
        database=to.path.strip("/"),
        autocommit=True,
        init_command=SESSION,
    )
    holder = secrets.token_hex(16)
    calls = connection.cursor()
    token = acquire(calls, holder)
    calls.execute("SELECT balance FROM account WHERE id = 1")
    (balance,) = calls.fetchone()
    print(json.dumps({"token": token, "read": balance}), flush=True)

    sys.stdin.readline()
    connection.begin()
    if calls.execute(ENTER, (RESOURCE, token, holder, ISSUER)):
        calls.execute("UPDATE account SET balance = %s WHERE id = 1", (balance + amount,))
        connection.commit()
        print(json.dumps({"written": balance + amount}), flush=True)
    else:
        connection.rollback()
        print(json.dumps({"refused": token}), flush=True)
    calls.execute("CALL fenced_release(%s, %s, %s, TRUE)", (RESOURCE, token, holder))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
