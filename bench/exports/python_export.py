"""The export of the benchmark by a Python program, as somebody would write it: keyset pages by psycopg, row groups of the same size by
the writer of pyarrow with one thread, and its S3 client. The argument is JSON; prints one line of JSON as worker.ts does."""

import json
import os
import resource
import sys
import time

os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"

import psycopg
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

TEXT, JSON_TEXT, TIME = pa.string(), pa.string(), pa.timestamp("us", tz="UTC")
COST = pa.decimal128(18, 9)
COLUMNS = {
    "id": ("id::text", TEXT),
    "tenant_id": ("workspace_id::text", TEXT),
    "session_id": ("session_id::text", TEXT),
    "trace_id": ("trace_id::text", TEXT),
    "parent_run_id": ("parent_run_id::text", TEXT),
    "parent_run_ids": ("parent_run_ids::text[]", pa.list_(TEXT)),
    "reference_example_id": ("reference_example_id::text", TEXT),
    "name": ("name", TEXT),
    "run_type": ("run_type", TEXT),
    "start_time": ("start_time", TIME),
    "end_time": ("end_time", TIME),
    "status": ("status", TEXT),
    "is_root": ("is_root", pa.bool_()),
    "dotted_order": ("dotted_order", TEXT),
    "trace_tier": ("'longlived'", TEXT),
    "inputs": ("inputs_json", JSON_TEXT),
    "outputs": ("outputs_json", JSON_TEXT),
    "error": ("error_json", TEXT),
    "extra": ("extra_json", JSON_TEXT),
    "events": ("events_json", JSON_TEXT),
    "tags": ("tags", pa.list_(TEXT)),
    "feedback_stats": ("null::text", TEXT),
    "total_tokens": ("total_tokens", pa.int64()),
    "prompt_tokens": ("prompt_tokens", pa.int64()),
    "completion_tokens": ("completion_tokens", pa.int64()),
    "total_cost": ("total_cost", COST),
    "prompt_cost": ("prompt_cost", COST),
    "completion_cost": ("completion_cost", COST),
    "first_token_time": ("first_token_time", TIME),
}
PAGE = 2_000


def to_array(name, values):
    kind = COLUMNS[name][1]
    if name == "error":
        values = [None if value is None else json.loads(value) for value in values]
    elif name in ("inputs", "outputs", "extra", "events"):
        return pa.array(values, pa.binary()).cast(TEXT)
    return pa.array(values, kind)


def pages(connection, task, names):
    selected = ", ".join(COLUMNS[name][0] for name in names)
    query = f"""
      select r.start_time, r.id, {selected} from trace_runs r
      where workspace_id = %(workspaceId)s and session_id = %(projectId)s and start_time >= %(from)s and start_time < %(to)s
        and (r.start_time, r.id) > (%(last_time)s::timestamptz, %(last_id)s::uuid)
      order by r.start_time, r.id limit {PAGE}"""
    place = {"last_time": task["window"]["from"], "last_id": "00000000-0000-0000-0000-000000000000"}
    with connection.cursor(binary=True) as cursor:
        while True:
            cursor.execute(query, {**task, **task["window"], **place})
            rows = cursor.fetchall()
            if not rows:
                return
            place = {"last_time": rows[-1][0], "last_id": rows[-1][1]}
            yield list(zip(*rows))[2:]


def main():
    task = json.loads(sys.argv[1])
    pa.set_cpu_count(1)
    names = task.get("fields") or list(COLUMNS)
    schema = pa.schema([pa.field(name, COLUMNS[name][1]) for name in names])
    host = task["endpoint"].removeprefix("http://")
    s3 = pyarrow.fs.S3FileSystem(
        access_key="bench", secret_key="bench", endpoint_override=host, scheme="http", region="us-east-1"
    )
    connection = psycopg.connect(task["conninfo"], autocommit=True)
    start, cpu = time.perf_counter(), time.process_time()
    total = 0
    with s3.open_output_stream("bench/python.parquet") as sink:
        with pq.ParquetWriter(sink, schema, compression=task["compression"]) as writer:
            for columns in pages(connection, task, names):
                arrays = [to_array(name, values) for name, values in zip(names, columns)]
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                writer.write_batch(batch, row_group_size=PAGE)
                total += batch.num_rows
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": total, "seconds": seconds, "cpuSeconds": time.process_time() - cpu, "peakMb": peak}))


main()
