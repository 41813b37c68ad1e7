"""Deposits into an account in a file of SQLite that only the holder of its lock may write.

Needs nothing but Python: python3 fenced_deposit_sqlite.py FILE AMOUNT
Waits in the queue, and waits for a line on its standard input between the read and the write.
"""

import json
import secrets
import sqlite3
import sys
import time

RESOURCE = "account:1"
ISSUER = "sqlite"
TTL = 3_000_000  # all times are microseconds
SILENCE = 3_000_000
ALIVE = "wait_until > :now AND abs(:now - seen_at) <= :silence"


def write(file, decide):
    """One transaction, as the only writer of the file."""
    file.execute("BEGIN IMMEDIATE")
    try:
        answer = decide(time.time_ns() // 1000)
        file.execute("COMMIT")
        return answer
    except BaseException:
        file.execute("ROLLBACK")
        raise


def look(file, me, now):
    """The token if the lease is free and it is our turn. Otherwise we have a place in the queue."""
    row = {**me, "now": now, "until": now + TTL, "silence": SILENCE, "resource": RESOURCE}
    file.execute(f"DELETE FROM fenced_waiter WHERE resource = :resource AND NOT ({ALIVE})", row)
    first = file.execute(
        "SELECT holder FROM fenced_waiter WHERE resource = :resource ORDER BY ticket LIMIT 1", row
    ).fetchone()
    granted = None
    if first in (None, (me["holder"],)):
        granted = file.execute(
            "INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)"
            " VALUES (:resource, :now / 10, :holder, :until, :attempt)"
            " ON CONFLICT DO UPDATE"
            " SET token = max(token + 1, revocation + 1, excluded.token), holder = excluded.holder,"
            " expires_at = excluded.expires_at, attempts = excluded.attempts, metadata = NULL"
            " WHERE holder = '' OR expires_at <= :now RETURNING token",
            row,
        ).fetchone()
    if granted:
        (token,) = granted
        file.execute("DELETE FROM fenced_waiter WHERE attempt = :attempt", row)
        claim(file, me, token)
        return token
    file.execute(
        "INSERT INTO fenced_waiter (resource, holder, attempt, wait_until, seen_at)"
        " VALUES (:resource, :holder, :attempt, :now + 60000000, :now)"
        " ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at",
        row,
    )
    return None


def claim(file, me, token):
    """From here on the store refuses every older holder."""
    file.execute(
        "INSERT INTO fenced_lock_service (only_row, name) VALUES (1, ?) ON CONFLICT DO NOTHING",
        (ISSUER,),
    )
    claimed = file.execute(
        "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)"
        " SELECT ?, ?, ?, name FROM fenced_lock_service WHERE name = ?"
        " ON CONFLICT DO UPDATE SET token = excluded.token, holder = excluded.holder"
        " WHERE excluded.token > token RETURNING 1",
        (RESOURCE, token, me["holder"], ISSUER),
    ).fetchone()
    if not claimed:
        raise RuntimeError("the store takes tokens of another lock service, or has seen a newer one")


def check(file, me, token):
    """The first statement of each fenced transaction."""
    mark = file.execute(
        "SELECT token, holder FROM fenced_high_water_mark WHERE resource = ?", (RESOURCE,)
    ).fetchone()
    if mark != (token, me["holder"]):
        raise PermissionError("a newer holder has claimed")


def main(path, amount):
    file = sqlite3.connect(path, isolation_level=None, timeout=5)
    file.execute("PRAGMA synchronous = FULL")
    me = {"holder": secrets.token_hex(32), "attempt": secrets.token_hex(8)}
    while (token := write(file, lambda now: look(file, me, now))) is None:
        time.sleep(0.02)
    (balance,) = file.execute("SELECT balance FROM account WHERE id = 1").fetchone()
    print(json.dumps({"token": token, "read": balance}), flush=True)

    sys.stdin.readline()

    def deposit(_now):
        check(file, me, token)
        file.execute("UPDATE account SET balance = ? WHERE id = 1", (balance + amount,))

    try:
        write(file, deposit)
        print(json.dumps({"written": balance + amount}), flush=True)
    except PermissionError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
    write(
        file,
        lambda _now: file.execute(
            "UPDATE fenced_lease SET holder = '', expires_at = 0, attempts = '', metadata = NULL"
            " WHERE resource = ? AND token = ? AND holder = ?",
            (RESOURCE, token, me["holder"]),
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
