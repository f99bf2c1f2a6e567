"""What valid requests must have that an OpenAPI document cannot say. `npm run schemathesis` loads this file."""

import os
import random
from datetime import datetime, timedelta, timezone

import schemathesis
from schemathesis.core import NOT_SET

WORKSPACE = os.environ["WORKSPACE"]
# Keys expire in the future, and within five years.
FUTURE = (datetime.now(timezone.utc) + timedelta(days=365)).strftime("%Y-%m-%dT%H:%M:%SZ")
STORABLE = "2026-01-01T00:00:00Z"


@schemathesis.hook
def before_call(context, case, kwargs):
    # Thirty wrong keys a minute of one address get 429 in place of 401; that limit has tests of its own. The platform runs
    # behind a trusted proxy here, and each request has the address of another client.
    case.headers["X-Forwarded-For"] = ".".join(str(random.randint(1, 254)) for _ in range(4))
    # A key for more than one workspace must name one, and schemathesis creates more.
    case.headers.setdefault("X-Tenant-Id", WORKSPACE)
    # A GET with a body is rejected as it arrives, whether its path has a GET or not.
    if case.method.upper() in ("GET", "HEAD"):
        case.body = NOT_SET
    if case.meta is not None and case.meta.generation.mode.is_positive:
        make_valid(case)


def make_valid(case):
    query = case.query or {}
    # Valid only where the page before returned it. test/platform/every-route/fuzz.test.ts changes valid ones.
    query.pop("cursor", None)
    # From 1970 on, the end not before the start and not in the future.
    query.pop("start_time", None)
    if "end_time" in query:
        query["end_time"] = STORABLE
    # A secret is named once.
    if isinstance(case.body, list) and all(isinstance(one, dict) for one in case.body):
        case.body = list({str(one.get("key")): one for one in case.body}.values())
    if isinstance(case.body, dict):
        # Rules are read by the parser of the proxy; test/platform/proxy-documents has tests of it.
        if "proxy_config" in case.body:
            case.body["proxy_config"] = {}
        if case.body.get("expires_at") is not None:
            case.body["expires_at"] = FUTURE
        for record in case.body.get("records") or []:
            if isinstance(record, dict) and "time" in record:
                record["time"] = STORABLE
