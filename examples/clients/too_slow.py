"""A client that is too slow, in plain Python, against `palisade-demo serve`."""

import json
import os
import time
import urllib.error
import urllib.request

GATEWAY = os.environ.get("GATEWAY", "http://127.0.0.1:8080")


def call(method, path, body, token=None):
    """The answer, and whether the store has checked the token of a write."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Fencing-Token"] = token
    data = json.dumps(body).encode()
    request = urllib.request.Request(GATEWAY + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer), "Fencing-Accepted" in answer.headers
    except urllib.error.HTTPError as refused:
        return json.load(refused), False


def acquire():
    """The token to send with every write; waits for the lease for up to 10 s."""
    lease, _ = call("POST", "/v1/leases/account:42", {"ttl_ms": 1000, "wait_ms": 10000})
    return lease["fencing_token"]


slow = acquire()
time.sleep(1.5)  # a pause: the lease runs out, because it is not renewed
following = acquire()
for token, balance in [(following, 150), (slow, 110)]:
    answer, was_fenced = call("PUT", "/v1/accounts/42", {"balance": balance}, token)
    if was_fenced:
        print("stored:", answer["balance"])
    else:
        print("refused:", answer["status"], answer["detail"])
