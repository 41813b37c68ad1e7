#!/usr/bin/env bash
# A client that is too slow, in curl and jq, against `palisade-demo serve`.
set -euo pipefail

gateway=${GATEWAY:-http://127.0.0.1:8080}
json=(-H 'Content-Type: application/json')
acquire() { # prints the Fencing-Token header to send with every write
  curl -sS "$gateway/v1/leases/account:42" "${json[@]}" -d '{"ttl_ms": 1000, "wait_ms": 10000}' |
    jq -r .fencing_token
}
write() {
  curl -sS -X PUT "$gateway/v1/accounts/42" -H "Fencing-Token: $1" "${json[@]}" -d "{\"balance\": $2}"
  echo
}

slow=$(acquire)   # this client is paused now, and its lease runs out
next=$(acquire)   # so the next client gets the lease, a second later
write "$next" 150 # {"id":"42","balance":150}
write "$slow" 110 # 412: a later holder has taken over, acquire the lock again
