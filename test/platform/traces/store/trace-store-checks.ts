// The contract of a trace store, for each adapter: parts in any order, more than once and at once give one row, as the pure merge says.
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  mergeParts,
  type PlacedPart,
  type RunValues,
} from '../../../../src/platform/traces/runs/run-part.ts';
import type { Store } from '../../../../src/platform/store/database.ts';
import type { StoredRun, TraceStore } from '../../../../src/platform/traces/trace-store.ts';
import { runs } from '../../../support/run-size.ts';
import { partOf, startTime, mergeRuns } from './trace-scene.ts';

export type StoreScene = {
  readonly store: TraceStore;
  readonly database: Store;
  addWorkspace(): Promise<string>;
};

export function describeTraceStore(name: string, open: () => StoreScene): void {
  const merge = (workspaceId: string, ...parts: readonly PlacedPart[]): Promise<void> => {
    const { store, database } = open();
    return mergeRuns(database, workspaceId, parts, store);
  };
  const read = (workspaceId: string, id: string): Promise<StoredRun | undefined> => {
    const { store, database } = open();
    return store.readRun(database.db, { workspaceId, id });
  };

  describe(`a trace store in ${name}`, () => {
    it('gives a run back as it was merged, with microseconds and the bytes of its payloads', async () => {
      const workspace = await open().addWorkspace();
      const inputs = Buffer.from('{"q":"\\u0000 ä 12345678901234567890"}');
      const part = partOf({
        values: {
          ...{
            name: 'a\tb\\n"',
            run_type: 'llm',
            end_time: '2026-11-20T12:00:01.500001Z',
            tags: ['x', '"y\\', 'NULL', ''],
          },
          ...{ inputs_json: inputs, inputs_pairs: { q: 'v' }, inputs_text: 'v', metadata: { k: [1, 'x'] } },
          extra_json: Buffer.from('{}'),
          usage_in_extra: { input_tokens: 1, output_tokens: 2, total_tokens: 3, total_cost: '0.000000001' },
        },
      });
      await merge(workspace, part);
      expect(await read(workspace, part.id)).toMatchObject({
        ...{ id: part.id, session_id: part.project.id, trace_id: part.id, name: 'a\tb\\n"', run_type: 'llm' },
        ...{
          status: 'success',
          start_time: startTime,
          end_time: '2026-11-20T12:00:01.500001Z',
          is_root: true,
        },
        ...{ tags: ['x', '"y\\', 'NULL', ''], inputs_json: inputs, outputs_json: null },
        ...{
          prompt_tokens: '1',
          completion_tokens: '2',
          total_tokens: '3',
          total_cost: '0.000000001',
          prompt_cost: null,
        },
      });
    });

    it('has no run of another workspace, and none that was not merged', async () => {
      const [one, other] = [await open().addWorkspace(), await open().addWorkspace()];
      const part = partOf({ values: { name: 'mine' } });
      await merge(one, part);
      expect(await read(other, part.id)).toBeUndefined();
      await merge(other, partOf({ id: part.id, values: { name: 'theirs' } }));
      expect([(await read(one, part.id))?.name, (await read(other, part.id))?.name]).toEqual([
        'mine',
        'theirs',
      ]);
    });

    it('locates the runs of the workspace', async () => {
      const [one, other] = [await open().addWorkspace(), await open().addWorkspace()];
      const [mine, theirs] = [partOf({}), partOf({ start: { trace_id: randomUUID() } })];
      await merge(one, mine);
      await merge(other, theirs);
      const { store, database } = open();
      const ids = [mine.id, theirs.id, randomUUID()];
      expect(await store.locateRuns(database.db, { workspaceId: one, ids })).toEqual(
        new Map([[mine.id, { session_id: mine.project.id, trace_id: mine.id }]]),
      );
      expect(await store.locateRuns(database.db, { workspaceId: one, ids: [] })).toEqual(new Map());
    });

    it('merges parts in any order as the pure merge does', async () => {
      const workspace = await open().addWorkspace();
      const fields = fc.record(
        {
          name: fc.constantFrom('a', 'b'),
          end_time: fc.constantFrom('2026-11-20T12:00:05.000000Z', '2026-11-20T12:00:06.000000Z'),
          error: fc.constantFrom('broken', 'lost'),
          tags: fc.constantFrom(['x'], ['y', 'z']),
          metadata: fc.constantFrom({ a: 1 }, { b: 2 }),
        },
        { requiredKeys: [] },
      );
      const one = fc.record({
        values: fields as fc.Arbitrary<RunValues>,
        isPatch: fc.boolean(),
        rank: fc.constantFrom(0 as const, 1 as const, 2 as const),
        day: fc.constantFrom('2026-11-19', '2026-11-20'),
        project: fc.record({
          rank: fc.constantFrom(0, 1, 2),
          id: fc.constantFrom(randomUUID(), randomUUID()),
        }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 4 }), async (given) => {
          const id = randomUUID();
          const parts = given.map(({ rank, day, ...part }) =>
            partOf({
              ...part,
              id,
              start: { rank, start_time: `${day}T12:00:00.000001Z`, dotted_order: `${day}-${rank}` },
            }),
          );
          for (const part of parts) await merge(workspace, part);
          const expected = parts.reduce(mergeParts);
          const run = await read(workspace, id);
          expect(run).toMatchObject({
            session_id: expected.project.id,
            start_time: expected.start.start_time,
            dotted_order: expected.start.dotted_order,
            name: expected.values.name ?? '',
            end_time: expected.values.end_time ?? null,
            tags: expected.values.tags ?? [],
            status: expected.values.error ? 'error' : expected.values.end_time ? 'success' : 'pending',
          });
        }),
        { numRuns: runs(300) },
      );
    });

    it('leaves one row of each run that several requests merge at once', async () => {
      const workspace = await open().addWorkspace();
      const ids = Array.from({ length: 40 }, () => randomUUID());
      const posts = ids.map((id) =>
        partOf({ id, values: { name: 'run', inputs_json: Buffer.from('{}'), inputs_text: '{}' } }),
      );
      const patches = ids.map((id) =>
        partOf({
          ...{ id, isPatch: true, values: { end_time: '2026-11-20T12:00:09.000000Z' } },
          project: { rank: 0, id: '00000000-0000-4000-8000-000000000002' },
        }),
      );
      await Promise.all(
        [posts, patches, posts.toReversed(), patches].map((parts) => merge(workspace, ...parts)),
      );
      for (const id of ids)
        expect(await read(workspace, id)).toMatchObject({
          ...{
            name: 'run',
            status: 'success',
            session_id: posts[0]!.project.id,
            inputs_json: Buffer.from('{}'),
          },
        });
      const { store, database } = open();
      const project = { workspaceId: workspace, id: posts[0]!.project.id };
      expect(await store.removeRuns(database.db, project)).toBe(true);
      expect(await read(workspace, ids[0]!)).toBeUndefined();
    });
  });
}
