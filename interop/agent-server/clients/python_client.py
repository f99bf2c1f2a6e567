# `langgraph-sdk` for Python, unchanged: every method for assistants, threads and runs, against the URL in the first argument.
import asyncio
import sys
import uuid

from langgraph_sdk import get_client, get_sync_client

client = get_client(url=sys.argv[1], api_key=None)
passed, failed, cases = 0, 0, []


def case(name):
    def keep(work):
        cases.append((name, work))
        return work

    return keep


def equal(seen, wanted):
    assert seen == wanted, f"{seen!r} is not {wanted!r}"


async def status_of(awaitable):
    try:
        await awaitable
    except Exception as error:  # The classes differ between versions; what counts is the status.
        return getattr(getattr(error, "response", None), "status_code", None) or getattr(error, "status_code", None)
    raise AssertionError("the call did not fail")


async def every(stream):
    return [part async for part in stream]


async def new_thread():
    return (await client.threads.create())["thread_id"]


@case("assistants: create, get, update, versions, latest, delete")
async def _():
    made = await client.assistants.create("report", config={"configurable": {"style": "one"}}, metadata={"p": 1}, name="py")
    key = made["assistant_id"]
    equal((await client.assistants.get(key))["name"], "py")
    second = await client.assistants.update(key, config={"configurable": {"style": "two"}}, metadata={"q": 2})
    equal([second["version"], second["metadata"]["p"], second["metadata"]["q"]], [2, 1, 2])
    equal([one["version"] for one in await client.assistants.get_versions(key)], [2, 1])
    equal((await client.assistants.set_latest(key, 1))["config"]["configurable"]["style"], "one")
    equal((await client.runs.wait(None, key, input={}))["seen"]["style"], "one")
    equal(await status_of(client.assistants.create("report", assistant_id=key)), 409)
    await client.assistants.create("report", assistant_id=key, if_exists="do_nothing")
    await client.assistants.delete(key)
    equal(await status_of(client.assistants.get(key)), 404)


@case("assistants: search, count, graph, schemas")
async def _():
    found = await client.assistants.search(metadata={"created_by": "system"}, graph_id="steps", limit=5)
    equal([one["graph_id"] for one in found], ["steps"])
    equal(await client.assistants.count(metadata={"created_by": "system"}, graph_id="steps"), 1)
    assert len((await client.assistants.get_graph("nested", xray=True))["nodes"]) > 4
    # A server that does not read the types of a graph has none.
    state = (await client.assistants.get_schemas("steps"))["state_schema"]
    assert state is None or "trail" in state["properties"]


@case("threads: create, get, update, search, count, copy, delete")
async def _():
    key = str(uuid.uuid4())
    await client.threads.create(thread_id=key, metadata={"py": key})
    equal(await status_of(client.threads.create(thread_id=key)), 409)
    await client.threads.create(thread_id=key, if_exists="do_nothing")
    equal((await client.threads.update(key, metadata={"more": 1}))["metadata"], {"py": key, "more": 1})
    equal([one["thread_id"] for one in await client.threads.search(metadata={"py": key})], [key])
    equal(await client.threads.count(metadata={"py": key}), 1)
    await client.threads.copy(key)
    await client.threads.delete(key)
    equal(await status_of(client.threads.get(key)), 404)


@case("threads: state, update, history")
async def _():
    key = await new_thread()
    await client.runs.wait(key, "steps", input={"count": 1})
    equal((await client.threads.get_state(key))["values"]["count"], 4)
    made = await client.threads.update_state(key, {"trail": ["hand"]}, as_node="one")
    equal((await client.threads.get_state(key))["next"], ["two"])
    at = made["checkpoint"]
    equal((await client.threads.get_state(key, checkpoint_id=at["checkpoint_id"]))["next"], ["two"])
    history = await client.threads.get_history(key, limit=10)
    equal([len(history), history[0]["checkpoint"]["checkpoint_id"]], [6, at["checkpoint_id"]])


@case("runs: create, list, get, join, delete")
async def _():
    key = await new_thread()
    run = await client.runs.create(key, "steps", input={}, metadata={"m": 1})
    equal((await client.runs.join(key, run["run_id"]))["count"], 3)
    equal((await client.runs.get(key, run["run_id"]))["status"], "success")
    equal([one["run_id"] for one in await client.runs.list(key)], [run["run_id"]])
    await client.runs.delete(key, run["run_id"])
    equal(await status_of(client.runs.get(key, run["run_id"])), 404)


for mode in ["values", "updates", "custom", "debug", "tasks", "checkpoints", "events"]:

    @case(f"runs: stream, {mode}")
    async def _(mode=mode):
        parts = await every(client.runs.stream(await new_thread(), "steps", input={}, stream_mode=mode))
        equal(parts[0].event, "metadata")
        equal({part.event for part in parts[1:]}, {mode})


@case("runs: stream of messages and of subgraphs")
async def _():
    says = {"messages": [{"type": "human", "content": "hi"}]}
    parts = await every(client.runs.stream(None, "chat", input=says, stream_mode="messages"))
    assert any(part.event == "messages/partial" for part in parts), [part.event for part in parts]
    parts = await every(client.runs.stream(None, "chat", input=says, stream_mode="messages-tuple"))
    assert any(part.event == "messages" for part in parts)
    parts = await every(client.runs.stream(None, "nested", input={}, stream_mode="updates", stream_subgraphs=True))
    assert any(part.event.startswith("updates|inside:") for part in parts)


@case("runs: a question, resume, update and goto, interrupts before and after")
async def _():
    key = await new_thread()
    await client.runs.wait(key, "approval", input={"request": "r"})
    equal((await client.threads.get(key))["status"], "interrupted")
    equal((await client.runs.wait(key, "approval", command={"resume": "yes"}))["decision"], "approved")
    gone = await client.runs.wait(key, "approval", command={"update": {"decision": "no"}, "goto": "act"})
    equal(gone["decision"], "refused: no")
    other = await new_thread()
    await client.runs.wait(other, "steps", input={}, interrupt_before=["two"])
    equal((await client.threads.get_state(other))["next"], ["two"])


@case("runs: an error, on wait and in a stream")
async def _():
    result = await client.runs.wait(None, "failing", input={}, raise_error=False)
    assert "Boo!" in str(result["__error__"])
    parts = await every(client.runs.stream(None, "failing", input={}, stream_mode="values"))
    equal([parts[-1].event, parts[-1].data["message"]], ["error", "Boo!"])


@case("runs: multitask strategies and cancel")
async def _():
    key = await new_thread()
    long = {"input": {"rounds": 500, "pause": 20}, "multitask_strategy": "enqueue"}
    one = await client.runs.create(key, "loop", **long)
    assert await status_of(client.runs.create(key, "loop", input={}, multitask_strategy="reject")) in (409, 422)
    two = await client.runs.create(key, "loop", input={"rounds": 1, "pause": 1}, multitask_strategy="interrupt")
    await client.runs.join(key, two["run_id"])
    equal((await client.runs.get(key, one["run_id"]))["status"], "interrupted")
    three = await client.runs.create(key, "loop", **long)
    await client.runs.cancel(key, three["run_id"], wait=True)
    equal((await client.runs.get(key, three["run_id"]))["status"], "interrupted")
    four = await client.runs.create(key, "loop", **long)
    await client.runs.cancel(key, four["run_id"], wait=True, action="rollback")
    equal(await status_of(client.runs.get(key, four["run_id"])), 404)


@case("runs: a resumable stream, joined from its start and from the middle")
async def _():
    key = await new_thread()
    run = await client.runs.create(key, "steps", input={}, stream_mode=["updates"], stream_resumable=True)
    whole = await every(client.runs.join_stream(key, run["run_id"], stream_mode=["updates"], last_event_id="-1"))
    equal([part.event for part in whole], ["metadata", "updates", "updates", "updates"])
    rest = await every(client.runs.join_stream(key, run["run_id"], stream_mode=["updates"], last_event_id="1"))
    equal([part.data for part in rest], [part.data for part in whole[2:]])


@case("runs: after_seconds, if_not_exists, durability, context, checkpoint")
async def _():
    key = str(uuid.uuid4())
    run = await client.runs.create(key, "steps", input={}, if_not_exists="create", after_seconds=1)
    equal((await client.runs.join(key, run["run_id"]))["count"], 3)
    equal((await client.runs.wait(None, "report", input={}, context={"tone": "dry"}))["seen"]["context"], {"tone": "dry"})
    equal((await client.runs.wait(await new_thread(), "steps", input={}, durability="exit"))["count"], 3)
    at = next(one for one in await client.threads.get_history(key) if one["next"] == ["two"])["checkpoint"]
    again = await client.runs.wait(key, "steps", input=None, checkpoint_id=at["checkpoint_id"])
    equal(again["trail"], ["one", "two", "three"])


@case("the synchronous client")
async def _():
    def work():
        sync = get_sync_client(url=sys.argv[1], api_key=None)
        thread = sync.threads.create()
        equal(sync.runs.wait(thread["thread_id"], "steps", input={})["count"], 3)
        equal(len(list(sync.runs.stream(thread["thread_id"], "steps", input={}, stream_mode="updates"))), 4)

    await asyncio.to_thread(work)


async def main():
    global passed, failed
    for name, work in cases:
        try:
            await asyncio.wait_for(work(), 60)
            passed += 1
            print(f"ok      {name}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__} {str(error)[:400]}".replace("\n", " "), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


sys.exit(asyncio.run(main()))
