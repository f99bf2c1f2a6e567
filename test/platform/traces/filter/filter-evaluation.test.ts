// Filters in the trace store against a second evaluator, which has its own reading of the language: generated pairs of a filter and a
// run, many runs in the database at once.
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseFilter } from '../../../../src/platform/traces/filter/parser.ts';
import { deriveValues } from '../../../../src/platform/traces/runs/run-derivation.ts';
import type { PlacedPart, RunValues } from '../../../../src/platform/traces/runs/run-part.ts';
import { formatMicros } from '../../../../src/platform/traces/runs/run-time.ts';
import { postgresTraceStore as store } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import type { RunSelection } from '../../../../src/platform/traces/trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { FIXED_SEED, isFullRun } from '../../../support/run-size.ts';
import { addWorkspace, partOf, mergeRuns } from '../store/trace-scene.ts';
import { filters, traces } from './generated-filters.ts';
import { evaluate, type Json, type SentRun } from './second-evaluator.ts';

const seed = isFullRun ? Date.now() & 0x7fffffff : FIXED_SEED;
const TRACES = isFullRun ? 60 : 15;

let database: TestDatabase;
let workspaceId: string;
const runs = fc.sample(traces, { seed, numRuns: TRACES }).flat();
beforeAll(async () => {
  database = await createTestDatabase();
  workspaceId = await addWorkspace(database.owner.db);
  await mergeRuns(database.store, workspaceId, runs.map(toPart));
  const feedback = runs.flatMap((run) =>
    run.feedback.map(({ key, score, value, source }) => ({
      ...{ workspace_id: workspaceId, run_id: run.id, trace_id: run.trace_id, session_id: run.session_id },
      ...{ key, score, value: value === null ? null : toJson(value), comment: null, correction: null },
      feedback_source: source === null ? null : JSON.stringify({ type: source }),
    })),
  );
  await database.owner.db.insertInto('trace_feedback').values(feedback).execute();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Feedback is stored by others, who replace what cannot be stored. */
const toJson = (value: Json): string => JSON.stringify(value).replaceAll('\\u0000', '\\ufffd');

function toPart(run: SentRun): PlacedPart {
  const { tokens, cost, metadata, error } = run;
  const usage = {
    ...(tokens && {
      input_tokens: tokens.prompt,
      output_tokens: tokens.completion,
      total_tokens: tokens.total,
    }),
    ...(cost === null ? {} : { total_cost: cost }),
  };
  const { usage_in_extra } = deriveValues('extra', { metadata: { usage_metadata: usage } });
  const payload = (field: 'inputs' | 'outputs'): RunValues =>
    run[field] === undefined
      ? {}
      : { [`${field}_json`]: Buffer.from(JSON.stringify(run[field])), ...deriveValues(field, run[field]) };
  return partOf({
    id: run.id,
    project: { rank: 2, id: run.session_id },
    start: {
      ...{ start_time: formatMicros(run.start), trace_id: run.trace_id, parent_run_id: run.parent_run_id },
      parent_run_ids: run.parent_run_id === null ? [] : [run.trace_id],
    },
    values: {
      ...{ run_type: run.run_type, tags: run.tags.map(clean), name: clean(run.name) },
      ...deriveValues('extra', { metadata }),
      ...(usage_in_extra === undefined ? {} : { usage_in_extra }),
      ...(run.end === null ? {} : { end_time: formatMicros(run.end) }),
      ...(error === null ? {} : deriveValues('error', error)),
      ...(run.reference_example_id === null ? {} : { reference_example_id: run.reference_example_id }),
      ...payload('inputs'),
      ...payload('outputs'),
    },
  });
}

const clean = (text: string): string => text.replaceAll('\0', '\ufffd');

type Kind = 'filter' | 'traceFilter' | 'treeFilter';

/** The number of pairs that it compared; each difference is thrown with its filter and its run. */
async function compareAll(count: number): Promise<number> {
  let pairs = 0;
  for (const [at, text] of fc.sample(filters, { seed, numRuns: count }).entries()) {
    const parsed = parseFilter(text);
    if (!parsed.ok) {
      for (const { msg } of parsed.issues)
        expect([text, msg]).toEqual([text, expect.stringMatching(/^A pair has one key/)]);
      continue;
    }
    const kind: Kind = at % 10 === 0 ? 'traceFilter' : at % 10 === 1 ? 'treeFilter' : 'filter';
    const selection = { workspaceId, window: { from: '2026-03-01T00:00:00Z' }, [kind]: parsed.filter };
    const found = await store.queryRuns(database.store.db, {
      ...(selection as RunSelection),
      order: 'asc',
      limit: 10_000,
    });
    const ids = new Set(found.map(({ id }) => id));
    for (const run of runs) {
      const isExpected = expectOf(kind, text, run);
      if (ids.has(run.id) !== isExpected)
        expect.fail(
          `seed ${seed}, ${kind} ${text}\nis ${ids.has(run.id)} in the store for ${JSON.stringify(run)}`,
        );
      pairs += 1;
    }
  }
  return pairs;
}

function expectOf(kind: Kind, text: string, run: SentRun): boolean {
  const tree = runs.filter((other) => other.trace_id === run.trace_id);
  if (kind === 'filter') return evaluate(text, run);
  return tree.some((one) => (kind === 'treeFilter' || one.id === run.trace_id) && evaluate(text, one));
}

describe('a generated filter', () => {
  it('finds the runs that a second evaluator finds', async () => {
    expect(await compareAll(30)).toBeGreaterThan(500);
  });

  it('finds them in a hundred thousand pairs', { tags: ['long'], timeout: 600_000 }, async () => {
    expect(await compareAll(Math.ceil(130_000 / runs.length))).toBeGreaterThan(100_000);
  });
});
