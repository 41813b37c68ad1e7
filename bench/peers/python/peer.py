"""redis-py's lock, measured as bench/src/bin/peer.rs says: peer.py LIBRARY LOAD TASKS MILLIS URL FILE"""

import asyncio
import os
import sys
import time

import redis.asyncio as redis

library, load, tasks, millis, url, file = sys.argv[1:]
tasks, millis = int(tasks), int(millis)


def told_to_go_on():
    print("ready", flush=True)
    sys.stdin.readline()


async def passes(client, task, until):
    done = []
    while time.monotonic_ns() < until:
        name = f"{library}:{0 if load == 'contest' else task}"
        before = time.monotonic_ns()
        lock = client.lock(name, timeout=10, sleep=0.002)
        await lock.acquire()
        granted = time.monotonic_ns()
        await lock.release()
        if load == "contest":
            done.append((task, granted, granted))
        else:
            done.append((task, before, time.monotonic_ns()))
    return done


async def main():
    client = redis.Redis.from_url(url, max_connections=tasks + 2)
    if load == "pause":
        lock = client.lock(f"{library}:0", timeout=millis / 1000, sleep=0.002)
        await lock.acquire()
        told_to_go_on()
        with open(file, "w") as account:
            account.write(str(os.getpid()))
        print("stored", flush=True)
        os._exit(0)  # a lease that ended cannot be released
    told_to_go_on()
    until = time.monotonic_ns() + millis * 1_000_000
    done = await asyncio.gather(*[passes(client, task, until) for task in range(tasks)])
    print("done", flush=True)
    for task in done:
        for one in task:
            print(*one)
    await client.aclose()


asyncio.run(main())
