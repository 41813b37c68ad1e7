"""Hooks for schemathesis: how to get a lease, and the promises of the gateway beyond its OpenAPI
document."""

import os
from urllib.parse import quote

import requests
import schemathesis

OF_LEASES = {"PUT /v1/leases/{resource}", "DELETE /v1/leases/{resource}"}
OF_ACCOUNTS = {"GET /v1/accounts/{id}", "PUT /v1/accounts/{id}"}
OF_JOBS = {"PUT /v1/jobs/{id}/{slot}"}
ACQUIRE = "POST /v1/leases/{resource}"


def segment(text):
    return quote(text, safe="")


class Gateway:
    """The gateway under test, besides the requests that test it."""

    def __init__(self):
        self.base = os.environ["GATEWAY"]
        self.operator = {"Authorization": f"Bearer {os.environ['PALISADE_ADMIN_TOKEN']}"}

    def token(self, resource):
        """The token of a new lease of the resource."""
        path = segment(resource)
        admin = f"{self.base}/v1/admin/leases/{path}"
        requests.delete(admin, headers=self.operator, timeout=30)
        lease = f"{self.base}/v1/leases/{path}"
        granted = requests.post(lease, json={"ttl_ms": 60_000}, timeout=30)
        return granted.json().get("fencing_token")


def is_name(text):
    return isinstance(text, str) and text.isascii() and 0 < len(text) <= 64 and text.isprintable()


@schemathesis.hook
def before_call(context, case, kwargs):
    """The edge refuses a token that was made up. So a request that is right in every other way gets
    a real token."""
    label = case.operation.label
    if label == ACQUIRE and isinstance(case.body, dict):
        # The gateway may wait so long, but for this test the wait is of no use.
        wait = case.body.get("wait_ms")
        if isinstance(wait, int) and 100 < wait <= 60_000:
            case.body["wait_ms"] = 100
    if label not in OF_LEASES | OF_ACCOUNTS | OF_JOBS:
        return
    if case.meta is None or case.meta.generation.mode != schemathesis.GenerationMode.POSITIVE:
        return
    parameters = case.path_parameters or {}
    name = parameters.get("resource") or parameters.get("id")
    if not is_name(name):
        return
    kind = "account:" if label in OF_ACCOUNTS else "job:" if label in OF_JOBS else ""
    resource = kind + name
    case.headers["Fencing-Token"] = Gateway().token(resource)


@schemathesis.check
def no_fault(ctx, response, case):
    """A mistake of a client must cause no fault of the service. A 503 must say when to try again."""
    status = response.status_code
    if status >= 500 and not (status == 503 and response.headers.get("retry-after")):
        raise AssertionError(f"{status} is a fault of the service")


@schemathesis.check
class EveryEndpointWorks:
    """Each endpoint must work at least once, because refusals alone would prove nothing."""

    def __init__(self):
        self.asked = set()
        self.worked = set()

    def after_response(self, ctx, response, case):
        self.asked.add(case.operation.label)
        if 200 <= response.status_code < 300:
            self.worked.add(case.operation.label)

    def after_run(self, ctx):
        never = sorted(self.asked - self.worked)
        if never:
            raise AssertionError("never answered with 2xx: " + ", ".join(never))
