// The contract of a trace store, for each adapter: pages of runs by filters, their payloads, what is below them, and statistics.
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseFilter } from '../../../../src/platform/traces/filter/parser.ts';
import type { Filter } from '../../../../src/platform/traces/filter/filter.ts';
import type { PlacedPart } from '../../../../src/platform/traces/runs/run-part.ts';
import type { FoundRun, RunQuery, RunSelection } from '../../../../src/platform/traces/trace-store.ts';
import { partOf, mergeRuns } from './trace-scene.ts';
import type { StoreScene } from './trace-store-checks.ts';

/** A trace over midnight: a root, two runs below it, one below the first of them; and a run of another trace. */
function createTrace(project: string) {
  const names = ['root', 'first', 'second', 'leaf', 'other'] as const;
  const ids = Object.fromEntries(names.map((name) => [name, randomUUID()])) as Record<
    (typeof names)[number],
    string
  >;
  const part = (name: keyof typeof ids, time: string, above: readonly string[], values: object = {}) =>
    partOf({
      ...{ id: ids[name], project: { rank: 2, id: project }, values: { name, ...values } },
      start: {
        ...{ start_time: time, trace_id: above[0] ?? ids[name], dotted_order: time },
        ...{ parent_run_id: above.at(-1) ?? null, parent_run_ids: above },
      },
    });
  const parts: readonly PlacedPart[] = [
    part('root', '2026-11-19T23:59:58.000001Z', [], {
      ...{ metadata: { env: 'prod', 'a.b': 5 }, thread_id: 't1', tags: ['x', '50%'] },
      ...{
        end_time: '2026-11-20T00:00:08.000001Z',
        inputs_json: Buffer.from('{"q":"say \\"hi\\""}'),
      },
      ...{ inputs_pairs: { q: 'say "hi"', n: '5', none: null }, inputs_text: '{"q":"say \\"hi\\""}' },
      usage_in_extra: { total_tokens: 7, prompt_tokens: 3, total_cost: '0.5' },
    }),
    part('first', '2026-11-19T23:59:59.000000Z', [ids.root], { run_type: 'llm', error: 'it broke' }),
    part('second', '2026-11-20T00:00:01.000000Z', [ids.root], {
      ...{ run_type: 'tool', end_time: '2026-11-20T00:00:03.500000Z', outputs_json: Buffer.from('{}') },
      ...{ outputs_text: '{}', usage_in_outputs: { total_tokens: 5, total_cost: '0.25' } },
    }),
    part('leaf', '2026-11-20T00:00:01.000000Z', [ids.root, ids.first]),
    part('other', '2026-11-20T00:00:02.000000Z', [], { metadata: { env: 'test' } }),
  ];
  return { ids, parts };
}

const filterOf = (text: string): Filter => {
  const parsed = parseFilter(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.filter;
};

export function describeRunQueries(name: string, open: () => StoreScene): void {
  describe(`queries of runs in ${name}`, () => {
    const project = randomUUID();
    const { ids, parts } = createTrace(project);
    const window = { from: '2026-11-01T00:00:00.000000Z' };
    let workspaceId: string;
    beforeAll(async () => {
      const { store, database, addWorkspace } = open();
      workspaceId = await addWorkspace();
      await mergeRuns(database, workspaceId, parts, store);
    });
    const query = (given: Partial<RunQuery> | object = {}): Promise<readonly FoundRun[]> =>
      open().store.queryRuns(open().database.db, {
        ...{ workspaceId, window, order: 'asc', limit: 100 },
        ...given,
      } as RunQuery);
    const namesOf = async (given: object): Promise<readonly string[]> =>
      (await query(given)).map((run) => run.name);

    it('are in the order of start and id, from one page to the next', async () => {
      const tied = [ids.second, ids.leaf].toSorted();
      const ordered = [ids.root, ids.first, ...tied, ids.other];
      const found = await query();
      expect(found.map(({ id }) => id)).toEqual(ordered);
      expect((await query({ order: 'desc' })).map(({ id }) => id)).toEqual(ordered.toReversed());
      for (const order of ['asc', 'desc'] as const) {
        const paged: string[] = [];
        for (let after: RunQuery['after']; ; ) {
          const page = await query({ order, limit: 2, ...(after === undefined ? {} : { after }) });
          paged.push(...page.map(({ id }) => id));
          after = page.at(-1);
          if (page.length < 2) break;
        }
        expect(paged).toEqual(order === 'asc' ? ordered : ordered.toReversed());
      }
      expect(found[0]).toMatchObject({
        ...{ session_id: project, start_time: '2026-11-19T23:59:58.000001Z', status: 'success' },
        ...{ total_tokens: '7', total_cost: '0.500000000', inputs_preview: '{"q":"say \\"hi\\""}' },
        sizes: { inputs: 18, outputs: null, extra: null, events: null, serialized: null, error: null },
      });
    });

    it('are in that order whatever time is between them', async () => {
      const { store, database, addWorkspace } = open();
      const [far, own] = [randomUUID(), await addWorkspace()];
      const times = ['2026-08-01', '2026-08-02', '2026-10-03', '2026-11-20'];
      const apart = times.map((day) =>
        partOf({ project: { rank: 2, id: far }, start: { start_time: `${day}T00:00:00.000000Z` } }),
      );
      await mergeRuns(database, own, apart, store);
      const ids = apart.map(({ id }) => id);
      const long = { workspaceId: own, projects: [far], window: { from: '2026-07-01T00:00:00Z' } };
      const idsOf = async (given: object): Promise<readonly string[]> =>
        (await query({ ...long, ...given })).map(({ id }) => id);
      expect(await idsOf({})).toEqual(ids);
      expect(await idsOf({ order: 'desc' })).toEqual(ids.toReversed());
      expect(await idsOf({ order: 'desc', limit: 2 })).toEqual([ids[3], ids[2]]);
      const place = (at: number) => ({ id: ids[at], start_time: apart[at]?.start.start_time });
      expect(await idsOf({ order: 'desc', after: place(2) })).toEqual([ids[1], ids[0]]);
      expect(await idsOf({ after: place(1) })).toEqual([ids[2], ids[3]]);
      const ended = { window: { from: '2026-08-02T00:00:00Z', to: '2026-11-20T00:00:00Z' } };
      expect(await idsOf({ ...ended, order: 'desc' })).toEqual([ids[2], ids[1]]);
      expect(await idsOf(ended)).toEqual([ids[1], ids[2]]);
    });

    it('have the runs of the window, of the projects and of the workspace alone', async () => {
      const at = '2026-11-20T00:00:01.000000Z';
      expect(await namesOf({ window: { ...window, to: at } })).toEqual(['root', 'first']);
      expect((await namesOf({ window: { from: at } })).toSorted()).toEqual(['leaf', 'other', 'second']);
      expect(await query({ projects: [randomUUID()] })).toEqual([]);
      expect(await query({ projects: [] })).toEqual([]);
      expect(await query({ projects: [randomUUID(), project] })).toHaveLength(5);
      expect(await query({ workspaceId: await open().addWorkspace() })).toEqual([]);
    });

    it('by ids leave everything else aside', async () => {
      const wanted = { ids: [ids.other, ids.root, randomUUID()] };
      expect(await namesOf({ ...wanted, window: undefined })).toEqual(['root', 'other']);
      expect(await namesOf({ ...wanted, workspaceId: await open().addWorkspace() })).toEqual([]);
    });

    const rows: readonly [filter: string, ...names: string[]][] = [
      ['eq(run_type, "llm")', 'first'],
      ['neq(error, null)', 'first'],
      ['not(eq(error, "it broke"))', 'root', 'second', 'leaf', 'other'],
      ['eq(status, "pending")', 'leaf', 'other'],
      ['gt(latency, "9s")', 'root'],
      ['lte(latency, 2.5)', 'second'],
      ['neq(latency, 10)', 'first', 'second', 'leaf', 'other'],
      ['eq(is_root, false)', 'first', 'second', 'leaf'],
      ['gte(name, "root")', 'root', 'second'],
      ['in(name, ["leaf", "other"])', 'leaf', 'other'],
      ['in(name, [])'],
      ['search(name, "o")', 'root', 'second', 'other'],
      ['search(name, "_")'],
      ['has(tags, "50%")', 'root'],
      ['search(tags, "%")', 'root'],
      ['gt(start_time, "2026-11-20T00:00:01.000000Z")', 'other'],
      ['gte(total_tokens, 6.5)', 'root'],
      ['eq(total_cost, 0.25)', 'second'],
      ['eq(thread_id, "t1")', 'root'],
      [`has(metadata, '{"env":"prod"}')`, 'root'],
      [`has(metadata, '{}')`, 'root', 'first', 'second', 'leaf', 'other'],
      ['and(eq(metadata_key, "env"), neq(metadata_value, "prod"))', 'other'],
      ['neq(metadata_key, "env")', 'first', 'second', 'leaf'],
      ['eq(metadata_value, 5)', 'root'],
      ['eq(metadata_value, "5")', 'root'],
      ['and(eq(input_key, "n"), gt(input_value, 4.5))', 'root'],
      ['and(eq(input_key, "none"), eq(input_value, null))', 'root'],
      ['search(inputs, "say \\"hi\\"")', 'root'],
      ['eq(outputs, null)', 'root', 'first', 'leaf', 'other'],
      ['search("broke")', 'first'],
      ['search("prod")', 'root'],
      ['eq(name, "a\\u0000b")'],
    ];
    it.each(rows)('by %s', async (text, ...names) => {
      const found = await namesOf({ filter: filterOf(text) });
      expect(found.toSorted()).toEqual(names.toSorted());
    });

    it('by the root of the trace, and by any run of it', async () => {
      const late = { from: '2026-11-20T00:00:00.000000Z' };
      const prod = filterOf(`has(metadata, '{"env":"prod"}')`);
      expect(await namesOf({ window: late, traceFilter: prod })).toHaveLength(2);
      expect(await namesOf({ traceFilter: filterOf('eq(run_type, "llm")') })).toEqual([]);
      const endless = { ...late, to: '9999-12-31T23:59:59.999999Z' };
      expect(await namesOf({ window: endless, treeFilter: prod })).toHaveLength(2);
      const failed = filterOf('eq(status, "error")');
      expect((await namesOf({ window: late, treeFilter: failed })).toSorted()).toEqual(['leaf', 'second']);
      expect(await namesOf({ treeFilter: failed, filter: filterOf('eq(is_root, true)') })).toEqual(['root']);
    });

    it('find payloads by the keys of runs, and what is below them', async () => {
      const { store, database } = open();
      const found = await query();
      const payloads = await store.readPayloads(database.db, {
        ...{ workspaceId, runs: found, fields: ['inputs', 'outputs'], maxBytes: 100 },
      });
      expect(payloads.get(ids.root)).toEqual({ inputs: Buffer.from('{"q":"say \\"hi\\""}'), outputs: null });
      const below = await store.readDescendants(database.db, { workspaceId, runs: found, limit: 100 });
      expect(below.get(ids.first)).toEqual({ direct: [ids.leaf], all: [ids.leaf] });
      expect(below.get(ids.root)?.direct).toEqual([ids.first, ids.second]);
      expect(below.get(ids.root)?.all).toHaveLength(3);
      expect(below.get(ids.other)).toEqual({ direct: [], all: [] });
      const few = await store.readDescendants(database.db, { workspaceId, runs: found, limit: 2 });
      expect(few.get(ids.root)?.all).toEqual([ids.first]);
    });

    it('have at most the limit of runs below them, of all runs of the page together', async () => {
      const { store, database } = open();
      const chain = Array.from({ length: 6 }, () => randomUUID());
      const parts = chain.map((id, at) =>
        partOf({
          id,
          start: {
            ...{ start_time: `2026-11-20T12:00:0${at}.000000Z`, trace_id: chain[0]! },
            ...{ parent_run_id: chain[at - 1] ?? null, parent_run_ids: chain.slice(0, at) },
          },
        }),
      );
      const workspace = await open().addWorkspace();
      await mergeRuns(database, workspace, parts, store);
      const page = await store.queryRuns(database.db, {
        ...{ workspaceId: workspace, window, order: 'asc', limit: 3 },
      });
      const read = async (limit: number) => {
        const below = await store.readDescendants(database.db, { workspaceId: workspace, runs: page, limit });
        return page.map(({ id }) => below.get(id)?.all.length);
      };
      expect(await read(100)).toEqual([5, 4, 3]);
      expect((await read(4)).reduce((sum, count) => sum! + count!, 0)).toBe(4);
    });

    it('have statistics', async () => {
      const { store, database } = open();
      const stats = (given: Partial<RunSelection>) =>
        store.readRunStats(database.db, { workspaceId, window, ...given } as RunSelection);
      expect(await stats({})).toMatchObject({
        ...{
          run_count: 5,
          latency_p50: 6.25,
          total_tokens: 12,
          total_cost: '0.750000000',
          cost_p50: '0.250000000',
        },
        ...{ error_rate: 0.2, streaming_rate: 0, median_tokens: 6 },
        last_run_start_time: '2026-11-20T00:00:02.000000Z',
      });
      expect(await stats({ ids: [ids.root] } as object)).toMatchObject({ run_count: 1, total_tokens: 7 });
      expect(await stats({ workspaceId: randomUUID() })).toMatchObject({
        ...{ run_count: 0, latency_p50: null, total_tokens: 0, total_cost: null, error_rate: null },
      });
    });
  });
}
