"""What valid requests must have that an OpenAPI document cannot say. `npm run schemathesis` loads this file."""

import os
import random
import sys
import uuid
from collections import Counter
from datetime import datetime, timedelta, timezone

import schemathesis
from schemathesis.core import NOT_SET
from schemathesis.core.parameters import ParameterLocation
from schemathesis.cli import EventHandler
from schemathesis.engine import events

WORKSPACE = os.environ["WORKSPACE"]
# Without its key and its workspace a run finds nothing any more: every response would be a 401 or a 404.
KEPT = {WORKSPACE, os.environ["PLATFORM_KEY_ID"]}
# Keys expire in the future, and within five years.
FUTURE = (datetime.now(timezone.utc) + timedelta(days=365)).strftime("%Y-%m-%dT%H:%M:%SZ")
STORABLE = "2026-01-01T00:00:00Z"
# The generator seeds the other one again for each example, which would then come from the same address.
addresses = random.SystemRandom()


@schemathesis.hook
def before_call(context, case, kwargs):
    # Thirty wrong keys a minute of one address get 429 in place of 401; that limit has tests of its own. The platform runs
    # behind a trusted proxy here, and each request has the address of another client.
    case.headers["X-Forwarded-For"] = ".".join(str(addresses.randint(1, 254)) for _ in range(4))
    # A key for more than one workspace must name one, and schemathesis creates more. Another one, or another organization, is
    # 403 before anything else of a request is looked at.
    if case.meta is None or not case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers["X-Tenant-Id"] = WORKSPACE
        case.headers.pop("X-Organization-Id", None)
    case.headers.setdefault("X-Tenant-Id", WORKSPACE)
    if case.method.upper() in ("DELETE", "PATCH"):
        keep_access(case)
    # A GET with a body is rejected as it arrives, whether its path has a GET or not.
    if case.method.upper() in ("GET", "HEAD"):
        case.body = NOT_SET
    if case.meta is not None and case.meta.generation.mode.is_positive:
        make_valid(case)


def keep_access(case):
    for name, value in (case.path_parameters or {}).items():
        if value in KEPT:
            case.path_parameters[name] = str(uuid.uuid4())


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
        case.body = named_once(case.body, "key")
    if isinstance(case.body, dict):
        make_body_valid(case.operation.path, case.body)


def make_body_valid(path, body):
    # Rules are read by the parser of the proxy; test/platform/proxy-documents has tests of it.
    if "proxy_config" in body:
        body["proxy_config"] = {}
    if body.get("expires_at") is not None:
        body["expires_at"] = FUTURE
    # From 1970 to 9999, the end not before the start.
    for name in ("start_time", "end_time"):
        if isinstance(body.get(name), str):
            body[name] = STORABLE
    for record in body.get("records") or []:
        if isinstance(record, dict) and "time" in record:
            record["time"] = STORABLE
    for place in ("/v2/deployments", "/v2/sandboxes/boxes", "/api/v1/feedback", "/api/v1/runs", "/api/v1/bulk-exports"):
        if path.startswith(place):
            RULES[place](path, body)


def make_deployment_valid(path, body):
    for name in ("secrets", "secret_references"):
        if isinstance(body.get(name), list):
            body[name] = named_once(body[name], "name")
    # Which fields belong to which source, and which never change, has tests in test/platform/control-plane.
    if "source" in body:
        body["source"] = "internal_source"
    for name in ("secret_references", "revision_source", *(["name", "source"] if path != "/v2/deployments" else [])):
        body.pop(name, None)
    # Programs are on both sides of each &&; test/platform/control-plane has tests of commands.
    for name in ("install_command", "build_command"):
        if (body.get("source_config") or {}).get(name) is not None:
            body["source_config"][name] = "npm ci && npm run build"
    # The most is not below the least.
    spec = (body.get("source_config") or {}).get("resource_spec")
    for name in list(spec or {}):
        if "max_scale" in name or "limit" in name:
            del spec[name]
        # One decimal.
        elif name in ("cpu", "db_cpu") and spec[name] is not None:
            spec[name] = 1
    for part, names in OF_OTHER_SOURCES.items():
        if isinstance(body.get(part), dict):
            body[part] = {name: value for name, value in body[part].items() if name not in names}


OF_OTHER_SOURCES = {
    "source_config": ("custom_url", "listener_id", "listener_config", "integration_id", "repo_url", "deployment_type"),
    "source_revision_config": ("image_uri", "repo_ref", "source_tarball_path"),
}


def make_box_valid(_, body):
    # Attached sandboxes have no limit of storage, and there are no snapshots.
    for name in ("fs_capacity_bytes", "snapshot", "snapshot_id", "snapshot_name"):
        body.pop(name, None)


def make_feedback_valid(_, body):
    # What it is about: one of three fields.
    if all(body.get(name) is None for name in ("run_id", "trace_id", "session_id")):
        body["run_id"] = str(uuid.uuid4())


def make_runs_valid(path, body):
    if path.endswith(("/query", "/stats")):
        # The filter language has tests of its own, and a window at most so many days.
        for name in ("filter", "trace_filter", "tree_filter", "search_filter", "cursor", "start_time"):
            body.pop(name, None)
    elif path.endswith("/batch"):
        body.update(post=[create_run(), create_run()], patch=[create_run()])
    elif path == "/api/v1/runs":
        body.update(create_run())
    else:
        # More of a run, whose id is in the path.
        for name in set(body) & {"id", *create_run()}:
            del body[name]
        body.update(name="more", outputs={"a": 1})


def make_export_valid(path, body):
    if path == "/api/v1/bulk-exports":
        # The filter language has tests of its own.
        body.pop("filter", None)
        # A schedule has no end, and another export ends after its start.
        body["end_time"] = None if body.get("interval_hours") is not None else AFTER
        if isinstance(body.get("export_fields"), list):
            body["export_fields"] = list(dict.fromkeys(body["export_fields"]))
    elif isinstance(body.get("config"), dict):
        # The one that the platform allows here.
        body["config"]["endpoint_url"] = ENDPOINT
        # Its characters and parts have tests in test/platform/bulk-export.
        body["config"]["prefix"] = "generated"
        # Those of the installation are not for it.
        body["credentials"] = body.get("credentials") or CREDENTIALS


AFTER = "2026-01-03T00:00:00Z"
ENDPOINT = "https://127.0.0.1:1"
CREDENTIALS = {"access_key_id": "generated", "secret_access_key": "generated"}


def create_run():
    now = datetime.now(timezone.utc)
    run = str(uuid.uuid4())
    return {
        "id": run,
        "trace_id": run,
        "parent_run_id": None,
        "dotted_order": f"{now:%Y%m%dT%H%M%S%f}Z{run}",
        "name": "generated",
        "run_type": "chain",
        "start_time": now.isoformat(),
        "inputs": {"a": 1},
    }


RULES = {
    "/v2/deployments": make_deployment_valid,
    "/v2/sandboxes/boxes": make_box_valid,
    "/api/v1/feedback": make_feedback_valid,
    "/api/v1/runs": make_runs_valid,
    "/api/v1/bulk-exports": make_export_valid,
}


def named_once(entries, key):
    return list({str(one.get(key)): one for one in entries if isinstance(one, dict)}.values())


@schemathesis.cli.handler()
class Progress(EventHandler):
    """One line for each operation: its time, its requests by the status of their response. A terminal has a progress bar instead."""

    def handle_event(self, ctx, event):
        if not isinstance(event, events.ScenarioFinished) or sys.stdout.isatty():
            return
        sent = event.recorder.interactions.values()
        counts = Counter(one.response.status_code for one in sent if one.response)
        statuses = " ".join(f"{status}:{count}" for status, count in sorted(counts.items()))
        what = f"{event.phase.name.lower()} {event.recorder.label}"
        print(f"{event.elapsed_time:6.1f} s  {event.status.name.lower()}  {what}  {statuses}", flush=True)
