"""Deposits into an account that only the holder of its lock may write.

Needs nothing but a PostgreSQL driver: python3 fenced_deposit.py URL AMOUNT
Waits for a line on its standard input between the read and the write.
"""

import json
import secrets
import select
import sys

import psycopg2

RESOURCE = "account:1"
ISSUER = "postgres"
TTL_MS = 3000


def acquire(connection, holder):
    """Waits for the lease, first come, first served; returns its fencing token."""
    channel = "waits_" + secrets.token_hex(8)
    attempt = secrets.token_hex(8)
    calls = connection.cursor()
    calls.execute(f"LISTEN {channel}")
    while True:
        calls.execute(
            "SELECT outcome, token, left_ms FROM fenced.acquire(%s, %s, %s, %s,"
            " wait_ms => NULL, channel => %s, not_after => clock_timestamp() + interval '30 s')",
            (RESOURCE, holder, attempt, TTL_MS, channel),
        )
        outcome, token, left_ms = calls.fetchone()
        if outcome == "granted":
            return token
        if outcome != "waiting":
            raise RuntimeError(outcome)
        # Until our turn is notified, or the lease of the other runs out; and at least every second.
        select.select([connection], [], [], min(1, left_ms / 1000))
        connection.poll()
        connection.notifies.clear()


def main(url, amount):
    connection = psycopg2.connect(url)
    connection.autocommit = True
    holder = secrets.token_hex(16)
    token = acquire(connection, holder)
    grant = (RESOURCE, token, holder, ISSUER)
    calls = connection.cursor()
    calls.execute("SELECT fenced.claim(%s, %s, %s, %s)", grant)
    calls.execute("SELECT balance FROM account WHERE id = 1")
    (balance,) = calls.fetchone()
    print(json.dumps({"token": token, "read": balance}), flush=True)

    sys.stdin.readline()
    try:
        calls.execute("BEGIN")
        calls.execute("SELECT fenced.begin_fenced(%s, %s, %s, %s)", grant)
        calls.execute("UPDATE account SET balance = %s WHERE id = 1", (balance + amount,))
        calls.execute("COMMIT")
        print(json.dumps({"written": balance + amount}), flush=True)
    except psycopg2.Error as error:
        calls.execute("ROLLBACK")
        print(json.dumps({"refused": error.pgcode}), flush=True)
    calls.execute("SELECT outcome FROM fenced.release(%s, %s, %s)", (RESOURCE, token, holder))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
