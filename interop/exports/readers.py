"""Reads exported files by pyarrow and by DuckDB, and compares each row with what the queries of the platform have given.

    python readers.py FOLDER EXPECTED_JSON VERSION COMPRESSION
"""

import datetime
import decimal
import glob
import json
import sys
from importlib.metadata import version

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

folder, expected_file, format_version, compression = sys.argv[1:]
UTC = datetime.timezone.utc
JSON_COLUMNS = {"inputs", "outputs", "extra", "events", "feedback_stats"}
TIMES = {"start_time", "end_time", "first_token_time"}
COSTS = {"total_cost", "prompt_cost", "completion_cost"}
TOKENS = {"total_tokens", "prompt_tokens", "completion_tokens"}
LISTS = {"tags", "parent_run_ids"}
CODECS = {"none": "UNCOMPRESSED", "gzip": "GZIP", "snappy": "SNAPPY", "zstd": "ZSTD"}
failed = []


def check(is_true, what):
    if not is_true:
        failed.append(what)


def type_of(name):
    if name in TIMES:
        return pa.timestamp("us", tz="UTC" if format_version == "v2_beta" else None)
    if name in COSTS:
        return pa.decimal128(18, 9)
    if name in TOKENS:
        return pa.int64()
    if name in LISTS:
        return pa.list_(pa.field("element", pa.string(), nullable=False))
    return pa.bool_() if name == "is_root" else pa.string()


def expected_of(name, run, tenant):
    value = tenant if name == "tenant_id" else run.get(name)
    if value is None:
        return None
    if name in TIMES:
        time = datetime.datetime.fromisoformat(value)
        return time if format_version == "v2_beta" else time.replace(tzinfo=None)
    return decimal.Decimal(value) if name in COSTS else value


def shown(name, value):
    if value is None:
        return None
    if name in JSON_COLUMNS:
        return json.loads(value)
    if name in TIMES and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def compare(reader, names, rows, given):
    check(len(rows) == len(given["rows"]), f"{reader}: {len(rows)} rows in place of {len(given['rows'])}")
    for row, run in zip(rows, given["rows"]):
        for name in names:
            found, expected = shown(name, row[name]), expected_of(name, run, given["workspaceId"])
            check(found == expected, f"{reader}: {name} of {run['id']}: {str(found)[:100]!r} in place of {str(expected)[:100]!r}")


with open(expected_file) as file:
    given = json.load(file)
files = sorted(glob.glob(f"{folder}/**/*.parquet", recursive=True))
check(len(files) > 3, f"{len(files)} files")
for path in files:
    metadata = pq.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            check(chunk.compression == CODECS[compression], f"{path}: {chunk.compression}")
        first = metadata.row_group(group).column(0)
        check(first.statistics is not None and first.statistics.has_min_max, f"{path}: no bounds of ids")

schema = pq.ParquetFile(files[0]).schema_arrow
names = schema.names
check(len(names) == 29, f"{len(names)} columns")
for field in schema:
    check(field.type == type_of(field.name), f"pyarrow: {field.name} is {field.type}")
    required = {"id", "tenant_id", "session_id", "trace_id", "name", "run_type", "start_time", "is_root", "dotted_order"}
    check(field.nullable != (field.name in required), f"pyarrow: whether {field.name} may be null")

# The folders are columns of their own beside those of the files, of which two have the same names.
partitions = pa.dataset.partitioning(pa.schema([(name, pa.int32()) for name in ("year", "month", "day")]), flavor="hive")
table = pa.dataset.dataset(files, format="parquet", partitioning=partitions, partition_base_dir=f"{folder}").to_table()
table = table.sort_by([("start_time", "ascending"), ("id", "ascending")])
compare("pyarrow", names, table.to_pylist(), given)
days = {(row["year"], row["month"], row["day"]) for row in table.select(["year", "month", "day"]).to_pylist()}
check(days == {(2026, 11, 19), (2026, 11, 20)}, f"pyarrow: days {days}")

duck = duckdb.connect()
duck.execute("set timezone = 'UTC'")
source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
found = duck.execute(f"select {', '.join(names)} from {source} order by start_time, id")
compare("DuckDB", names, [dict(zip(names, row)) for row in found.fetchall()], given)
types = dict(row[:2] for row in duck.execute(f"describe select * from {source}").fetchall())
check(types["start_time"] == ("TIMESTAMP WITH TIME ZONE" if format_version == "v2_beta" else "TIMESTAMP"), f"DuckDB: {types['start_time']}")
check((types["total_cost"], types["total_tokens"], types["tags"]) == ("DECIMAL(18,9)", "BIGINT", "VARCHAR[]"), f"DuckDB: {types}")
one_day = duck.execute(f"select count(*) from {source} where day = 20 and export_id is not null").fetchone()[0]
check(one_day == sum(run["start_time"].startswith("2026-11-20") for run in given["rows"]), f"DuckDB: {one_day} rows of a day")

versions = f"pyarrow {version('pyarrow')}, duckdb {version('duckdb')}"
print(json.dumps({"failed": failed[:20], "files": len(files), "rows": len(given["rows"]), "versions": versions}))
