"""The public Python client, langsmith.sandbox: the life of a sandbox. The same steps as javascript.mjs."""

import hashlib
import json
import sys
import urllib.error
import urllib.request

from langsmith.sandbox import SandboxClient, SandboxConnectionError

endpoint, key, viewer_key, origin = sys.argv[1:5]
api_endpoint = f"{endpoint}/v2/sandboxes"
client = SandboxClient(api_endpoint=api_endpoint, api_key=key)
name = "python"


def report(step, value):
    print(json.dumps({"step": step, "value": value}), flush=True)


def ask_for(what):
    report("ask", what)
    return json.loads(sys.stdin.readline())


def error_of(work):
    try:
        work()
        return "no error"
    except Exception as error:
        fields = (getattr(error, one, None) for one in ("field", "quota_type", "error_type"))
        return [type(error).__name__, next((field for field in fields if field is not None), None)]


def rule(headers):
    return {"rules": [{"name": "origin", "match_hosts": ["api.localhost"], "headers": headers}]}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def lifecycle():
    header = {"name": "X-Key", "type": "workspace_secret", "value": "Bearer {INTEROP}"}
    created = client.create_sandbox(name=name, proxy_config=rule([header]), idle_ttl_seconds=3600)
    report("create", [created.name, created.status, kind_of(created.id), kind_of(created.dataplane_url)])
    later = client.create_sandbox(name="later", wait_for_ready=False)
    report("create without waiting", later.status)
    report("wait", client.wait_for_sandbox("later", timeout=60).status)
    report("list", sorted(one.name for one in client.list_sandboxes()))
    report("get", client.get_sandbox(name).id == created.id)
    report("status", client.get_sandbox_status(name).status)
    updated = client.update_sandbox(name, new_name="renamed", idle_ttl_seconds=600)
    report("update", [updated.name, updated.idle_ttl_seconds])
    client.update_sandbox("renamed", new_name=name)
    client.delete_sandbox("later")
    return client.get_sandbox(name)


def kind_of(value):
    return "string" if isinstance(value, str) else type(value).__name__


def result_of(result):
    return {"stdout": result.stdout, "stderr": result.stderr, "exit_code": result.exit_code}


def run(sandbox):
    command = f"curl -sS -o /dev/null -w '%{{http_code}}' --noproxy '' https://{origin}/v1/models"
    report("curl", result_of(sandbox.run(command, timeout=30)))
    report("run", result_of(sandbox.run("echo $A; pwd; echo e >&2; exit 3", env={"A": "b"}, cwd="/tmp")))
    out, err = [], []
    sandbox.run("echo one; echo two >&2", on_stdout=out.append, on_stderr=err.append)
    report("callbacks", ["".join(out), "".join(err)])
    handle = sandbox.run('read x; echo "got $x"; sleep 1000', wait=False, close_input=False)
    handle.send_input("input\n")
    seen = ""
    try:
        for chunk in handle:
            seen += chunk.data
            if seen == "got input\n":
                handle.kill()
    except SandboxConnectionError:
        # Its kill closes the connection: how the command ended is asked for again.
        pass
    ended = sandbox.reconnect(handle.command_id, stdout_offset=len(seen)).result
    report("stdin and kill", [seen, ended.exit_code])
    report("timeout", error_of(lambda: sandbox.run("sleep 1000", timeout=1)))


# Lines come all the time, also while the platform is away.
COUNTING = "i=0; until test -e /tmp/go; do i=$((i+1)); echo line $i; sleep 0.02; done; echo last $i"


def restart(sandbox):
    handle = sandbox.run(COUNTING, wait=False, timeout=300)
    pieces = []
    for chunk in handle:
        pieces.append(chunk.data)
        if len(pieces) == 10:
            ask_for("restart")
            sandbox.write("/tmp/go", "")
    whole = "".join(pieces)
    lines = whole.strip().split("\n")
    is_whole = all(line == f"line {at + 1}" for at, line in enumerate(lines[:-1]))
    report("restart", [is_whole, lines[-1] == f"last {len(lines) - 1}", handle.result.exit_code])
    again = sandbox.reconnect(handle.command_id, stdout_offset=7)
    report("reconnect", "".join(chunk.data for chunk in again) == whole[7:])
    report("reconnect to nothing", error_of(lambda: sandbox.reconnect("none").result))


def files(sandbox):
    sandbox.write("/tmp/dir/text", "héllo")
    report("read", sandbox.read("/tmp/dir/text").decode())
    content = bytes(at % 251 for at in range(3_000_000))
    sandbox.write("/tmp/bytes", content)
    report("bytes", sha256(sandbox.read("/tmp/bytes")) == sha256(content))
    sandbox.write("/tmp/part", "0123456789")
    stat = sandbox.stat("/tmp/part")
    report("stat", stat.size_bytes)
    wanted = {"start": 2, "end": 4, "if_range": stat.etag}
    chunk = sandbox.read_range("/tmp/part", **wanted)
    report("range", [chunk.content.decode(), chunk.partial, chunk.start, chunk.total_bytes])
    report("suffix", sandbox.read_range("/tmp/part", suffix_bytes=2).content.decode())
    report("unchanged", sandbox.read_range("/tmp/part", start=0, if_none_match=stat.etag).unchanged)
    sandbox.write("/tmp/part", "abcdefghij")
    report("changed", sandbox.read_range("/tmp/part", **wanted).partial)
    report("past the end", error_of(lambda: sandbox.read_range("/tmp/part", start=99)))
    sandbox.write("/tmp/found/x.py", "import os\nTODO\n")
    sandbox.write("/tmp/found/sub/y.py", "TODO too\n")
    report("glob", [one.path for one in sandbox.glob("**/*.py", "/tmp/found").matches])
    report("ls", [[one.path, one.is_dir] for one in sandbox.ls("/tmp/found").matches])
    found = sandbox.grep("TODO", "/tmp/found", glob="*.py").matches
    report("grep", [{"path": one.path, "line": one.line, "text": one.text} for one in found])
    report("no file", error_of(lambda: sandbox.read("/tmp/none")))
    report("no permission", error_of(lambda: sandbox.write("/usr/x", "x")))


def status_of(url):
    try:
        with urllib.request.urlopen(url) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def service(sandbox, program):
    sandbox.write("/tmp/server.pl", program)
    sandbox.run("perl /tmp/server.pl >/dev/null 2>&1 & sleep 1")
    url = client.service(name, 8000)
    response = url.get("/a/path?b=c")
    report("service", [response.status_code, response.text])
    report("service without its token", status_of(url.service_url))
    report("service of the proxy", error_of(lambda: client.service(name, 3128)))


def errors():
    def other(api_key):
        return SandboxClient(api_endpoint=api_endpoint, api_key=api_key, max_retries=0)

    report("401", error_of(lambda: other("wrong").get_sandbox(name)))
    report("403", error_of(lambda: other(viewer_key).create_sandbox(name="denied")))
    report("404", error_of(lambda: client.get_sandbox("none")))
    report("408", error_of(lambda: client.create_sandbox(name="slow", timeout=0)))
    client.wait_for_sandbox("slow", timeout=60)
    report("409", error_of(lambda: client.update_sandbox("slow", new_name=name)))
    invalid = {"rules": [{"name": "x", "match_hosts": ["*"]}]}
    report("422", error_of(lambda: client.create_sandbox(name="bad", proxy_config=invalid)))
    missing = rule([{"name": "X-Key", "type": "workspace_secret", "value": "{NONE}"}])
    report("422 for a secret", error_of(lambda: client.create_sandbox(name="bad", proxy_config=missing)))
    report("422 of an update", error_of(lambda: client.update_sandbox(name, proxy_config=invalid)))
    # Without retries: a quota does not change by itself.
    strict = other(key)
    report("429 memory", error_of(lambda: strict.create_sandbox(mem_bytes=2**41)))
    report("429 cpu", error_of(lambda: strict.create_sandbox(vcpus=1000)))
    report("429 storage", error_of(lambda: strict.create_sandbox(fs_capacity_bytes=2**43)))
    report("429 count", error_of(lambda: [strict.create_sandbox(name=f"many-{i}") for i in range(10)]))
    for one in client.list_sandboxes():
        if one.name != name:
            client.delete_sandbox(one.name)


def end(sandbox):
    client.stop_sandbox(name)
    report("stop", client.get_sandbox_status(name).status)
    report("run in a stopped one", sandbox.run("cat /tmp/dir/text").stdout)
    sandbox.stop()
    client.start_sandbox(name, timeout=60)
    report("start", client.get_sandbox_status(name).status)
    ask_for("stop the database")
    strict = SandboxClient(api_endpoint=api_endpoint, api_key=key, max_retries=0, timeout=60)
    report("503", error_of(lambda: strict.create_sandbox(name="x")))
    ask_for("continue the database")
    sandbox.delete()
    report("delete", error_of(lambda: client.get_sandbox(name)))


sandbox = lifecycle()
run(sandbox)
restart(sandbox)
files(sandbox)
service(sandbox, ask_for("server"))
errors()
end(sandbox)
