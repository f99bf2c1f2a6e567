"""The public Python client of traces, unchanged: what it sends, and what it reads back. The same steps as javascript.mjs.

    python python_client.py tree|load|whole|feedback_part ENDPOINT KEY PROJECT
"""

import datetime
import json
import logging
import sys
import threading
import warnings

from langsmith import Client, traceable
from langsmith.run_helpers import get_current_run_tree, tracing_context
from langsmith.schemas import Attachment

scenario, endpoint, key, project = sys.argv[1:5]
client = Client(api_url=endpoint, api_key=key)
# What the client warns about is shown when something is not as expected.
logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
# The client says of calls of its API that a later one will replace them.
warnings.simplefilter("ignore")


def report(step, value):
    print(json.dumps({"step": step, "value": value}), flush=True)


def error_of(work):
    """The name of the error's class."""
    try:
        work()
        return "no error"
    except Exception as error:
        return type(error).__name__


def names_of(runs):
    return sorted(run.name for run in runs)


# What is traced.


@traceable(client=client, run_type="retriever", metadata={"source": "wiki"})
def lookup(topic):
    return {"documents": [f"All about {topic}"]}


def to_reply(pieces):
    return {
        "messages": [{"role": "assistant", "content": "".join(piece["content"] for piece in pieces)}],
        "usage_metadata": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    }


@traceable(client=client, run_type="llm", metadata={"ls_model_name": "a-model"}, reduce_fn=to_reply)
def model(prompt):
    """Its tokens are events, of which the first one has a time."""
    yield {"content": "Be"}
    yield {"content": "cause."}


@traceable(client=client, run_type="tool", tags=["writes"])
def failing():
    raise ValueError("there is no such page")


CONTENT = {"note": b"a note\n", "bytes": bytes(at % 251 for at in range(70_000))}


@traceable(client=client, run_type="tool")
def attaching(folder, note: Attachment, bytes: Attachment):
    return {"stored": True}


def converse(name, thread, fails=False):
    """Returns the id of the root."""
    found = {}

    @traceable(
        client=client,
        name=name,
        run_type="chain",
        tags=["first", "second"],
        metadata={"session_id": thread, "env": "prod", "attempt": 2},
    )
    def run(question, nested):
        found["id"] = get_current_run_tree().id
        lookup(question)
        reply = "".join(piece["content"] for piece in model(question))
        try:
            failing()
        except ValueError:
            pass
        attaching(
            "notes",
            note=Attachment("text/plain", CONTENT["note"]),
            bytes=Attachment("application/octet-stream", CONTENT["bytes"]),
        )
        if fails:
            raise RuntimeError("the conversation has ended")
        return {"reply": reply}

    try:
        run(question="Why?", nested={"deep": [1, 2.5, None, "\U0001f600"]})
    except RuntimeError:
        pass
    return found["id"]


# Scenarios.


def tree():
    found = converse("conversation", "thread-1")
    client.flush()
    run = client.read_run(found, load_child_runs=True)
    report("root", [run.name, run.run_type, run.status, run.inputs, run.outputs, sorted(run.tags)])
    report("metadata", [run.metadata["session_id"], run.metadata["env"], run.metadata["attempt"]])
    report("children", sorted([child.name, child.status] for child in run.child_runs))
    children = {child.name: child for child in run.child_runs}
    # A traceback follows it.
    report("error", children["failing"].error.split("\n")[0])
    said = children["model"]
    report("tokens", [said.prompt_tokens, said.completion_tokens, said.total_tokens])
    report("first token", type(said.first_token_time).__name__)
    stored = client.read_run(children["attaching"].id).attachments
    read = {name: [one["mime_type"], one["reader"].read() == CONTENT[name]] for name, one in stored.items()}
    report("attachments", read)
    return found


def feedback(run_id):
    client.create_feedback(run_id, "helpful", score=0.75, comment="Short.")
    created = client.create_feedback(
        run_id, "colour", value="green", correction={"colour": "red"}, feedback_source_type="model"
    )
    read = client.read_feedback(created.id)
    report("feedback", [read.key, read.score, read.value, read.correction, read.feedback_source.type])
    client.update_feedback(created.id, score=1, comment="Better.")
    changed = client.read_feedback(created.id)
    report("updated feedback", [changed.score, changed.comment, changed.value])
    report("feedback of the run", sorted(one.key for one in client.list_feedback(run_ids=[run_id])))
    of_models = client.list_feedback(run_ids=[run_id], feedback_source_type=["model"])
    report("feedback of models", [one.key for one in of_models])
    report("feedback_stats", client.read_run(run_id).feedback_stats["helpful"])


def feedback_part():
    """Feedback that goes with the runs, as the client sends it where it is to keep the trace for longer."""
    found = converse("conversation", "thread-1")
    client.create_feedback(
        trace_id=found, key="helpful", score=0.5, comment="Short.", extend_trace_retention=True
    )
    client.flush()
    listed = list(client.list_feedback(run_ids=[found]))
    report("feedback of the run", [[one.key, one.score, one.comment] for one in listed])


FILTERS = [
    'eq(name, "model")',
    'and(eq(run_type, "llm"), gt(total_tokens, 10))',
    "neq(error, null)",
    "and(neq(error, null), eq(is_root, true))",
    'eq(status, "error")',
    'has(tags, "writes")',
    """has(metadata, '{"source": "wiki"}')""",
    'and(eq(metadata_key, "env"), eq(metadata_value, "prod"))',
    'and(in(metadata_key, ["session_id", "conversation_id", "thread_id"]), eq(metadata_value, "thread-2"), eq(is_root, true))',
    'and(eq(feedback_key, "helpful"), gte(feedback_score, 0.5))',
    'and(eq(input_key, "question"), eq(input_value, "Why?"), eq(is_root, true))',
    'search("no such page")',
    'gt(latency, "2m")',
    "lt(latency, 3600)",
    'and(gt(start_time, "2023-07-15T12:34:56Z"), or(eq(name, "lookup"), not(neq(name, "attaching"))))',
]


def queries(run_id):
    def select(**wanted):
        return names_of(client.list_runs(project_name=project, **wanted))

    for one in FILTERS:
        report(one, select(filter=one))
    report("is root", select(is_root=True))
    report("run type", select(run_type="tool"))
    report("with an error", select(error=True, is_root=True))
    report("trace", len(select(trace_id=run_id)))
    report("parent", select(parent_run_id=run_id))
    report("query", select(query="All about"))
    report("trace filter", select(filter='eq(run_type, "llm")', trace_filter='eq(status, "error")'))
    report("tree filter", select(is_root=True, tree_filter='eq(name, "attaching")'))
    report("limit", len(select(limit=4)))
    report("ids", names_of(client.list_runs(run_ids=[run_id])))
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=1)
    report("since", select(start_time=later))
    for order, title in (("asc", "ascending"), ("desc", "descending")):
        runs = client.list_runs(project_name=project, is_root=True, order=order)
        report(title, [run.name for run in runs])
    thread = client.read_thread(thread_id="thread-1", project_name=project)
    report("thread", [run.name for run in thread])
    threads = client.list_threads(project_name=project)
    report("threads", sorted([one["thread_id"], one["count"]] for one in threads))
    report("422", error_of(lambda: select(filter="eq(name")))
    report("no such run", error_of(lambda: client.read_run("0192f0c1-6f2b-7000-8000-00000000000a")))


def stats():
    found = client.get_run_stats(project_names=[project])
    report("stats", [found["run_count"], found["total_tokens"], type(found["latency_p50"]).__name__])
    failed = client.get_run_stats(project_names=[project], filter='eq(status, "error")')
    report("stats of errors", [failed["run_count"], failed["error_rate"]])


def projects():
    name = f"{project} made by hand"
    report("has no project", client.has_project(name))
    made = client.create_project(name, description="first", metadata={"a": 1})
    report("project", [made.name.replace(project, "P"), made.description, made.metadata])
    report("409", error_of(lambda: client.create_project(name)))
    again = client.create_project(name, description="second", upsert=True)
    report("upsert", again.id == made.id)
    report("has project", client.has_project(name))
    client.update_project(made.id, description="third")
    report("updated", client.read_project(project_id=str(made.id)).description)
    listed = client.list_projects(name_contains=project)
    report("projects", sorted(one.name.replace(project, "P") for one in listed))
    with_stats = client.read_project(project_name=project, include_stats=True)
    report("project stats", [with_stats.run_count, type(with_stats.latency_p50).__name__])
    client.delete_project(project_name=name)
    report("deleted", [client.has_project(name), error_of(lambda: client.read_project(project_name=name))])


def whole():
    found = tree()
    converse("later", "thread-1")
    converse("broken", "thread-2", fails=True)
    client.flush()
    feedback(found)
    queries(found)
    stats()
    projects()


def load():
    """Runs that begin in one request and end in another one. Reports what must be there."""
    expected = []

    def note(run, inputs, outputs):
        parent = None if run.parent_run_id is None else str(run.parent_run_id)
        expected.append(
            {"id": str(run.id), "name": run.name, "parent": parent, "inputs": inputs, "outputs": outputs}
        )

    def one(n):
        @traceable(client=client, name=f"step {n}", run_type="tool")
        def step(n, text):
            note(get_current_run_tree(), {"n": n, "text": text}, {"length": len(text)})
            return {"length": len(text)}

        @traceable(client=client, name=f"load {n}", run_type="chain")
        def root(text):
            length = step(n, text)["length"]
            client.flush()
            note(get_current_run_tree(), {"text": text}, {"length": length, "n": n})
            return {"length": length, "n": n}

        with tracing_context(project_name=project, enabled=True, client=client):
            root("x" * (1_000 * (n % 7)) + str(n))

    for burst in range(12):
        threads = [threading.Thread(target=one, args=(burst * 3 + at,)) for at in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.flush()
    report("expected", expected)


with tracing_context(project_name=project, enabled=True, client=client):
    {"tree": tree, "whole": whole, "load": load, "feedback_part": feedback_part}[scenario]()
# Non-daemon threads of the client end with it.
client.close() if hasattr(client, "close") else client.cleanup()
