"""A contender for one lock in a process of its own.

Usage: contender.py SERVERS PATH SESSION_SECONDS PATTERN..

Each line of its input is a command, and each answer a line of JSON. A lock is made with the patterns
as `extra_lock_patterns`. Times are those of a clock that all processes of the machine share.
"""

import json
import sys
import time

from kazoo.client import KazooClient


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def say(**what):
    print(json.dumps(what), flush=True)


def main():
    servers, path, session, *patterns = sys.argv[1:]
    client = KazooClient(hosts=servers, timeout=float(session))
    client.start(timeout=60)
    lock = client.Lock(path, "kazoo", extra_lock_patterns=patterns)
    say(ready=True)
    for line in sys.stdin:
        command = line.split()
        if command[0] == "try":
            say(acquired=lock.acquire(blocking=False))
        elif command[0] == "acquire":
            lock.acquire()
            say(acquired=True)
        elif command[0] == "release":
            say(released=lock.release())
        elif command[0] == "contenders":
            say(contenders=lock.contenders())
        elif command[0] == "turns":
            for _ in range(int(command[1])):
                lock.acquire()
                began = now()
                time.sleep(0.002)
                ended = now()
                lock.release()
                say(began_ns=began, ended_ns=ended)
    client.stop()


main()
