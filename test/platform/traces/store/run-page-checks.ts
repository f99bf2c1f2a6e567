// The contract of a trace store, for each adapter: pages of whole runs for exports.
import { randomUUID } from 'node:crypto';
import { expect, describe, it } from 'vitest';
import { type PagedRun, type RunPageColumn, toCursor } from '../../../../src/platform/traces/contract.ts';
import type { RunPageRead } from '../../../../src/platform/traces/trace-store.ts';
import { mergeRuns, partOf } from './trace-scene.ts';
import type { StoreScene } from './trace-store-checks.ts';

const window = { from: '2026-11-20T00:00:00.000Z', to: '2026-11-21T00:00:00.000Z' };
const at = (time: string) => ({ start_time: `2026-11-20T${time}Z` });

export function describeRunPages(name: string, open: () => StoreScene): void {
  const readAll = async (
    read: Omit<RunPageRead, 'window' | 'columns' | 'maxRows' | 'maxBytes'> & Partial<RunPageRead>,
  ): Promise<readonly (readonly PagedRun[])[]> => {
    const { store, database } = open();
    const pages: (readonly PagedRun[])[] = [];
    for (let after = read.after; ; ) {
      const found = await store.readRunPage(database.db, {
        ...{ window, maxRows: 100, maxBytes: 1_000_000, columns: new Set<RunPageColumn>(['name']) },
        ...read,
        ...(after === undefined ? {} : { after }),
      });
      const last = found.at(-1);
      if (last === undefined) return pages;
      pages.push(found);
      after = toCursor(last);
    }
  };

  describe(`pages of whole runs in ${name}`, () => {
    it('have the runs of the project and the window once each, in order, with microseconds', async () => {
      const { store, database, addWorkspace } = open();
      const [workspaceId, projectId] = [await addWorkspace(), randomUUID()];
      const project = { rank: 2, id: projectId } as const;
      const times = [
        '00:00:00.000000',
        '00:00:00.000001',
        '00:00:00.000001',
        '23:59:59.999999',
        '12:00:00.5',
      ];
      const parts = times.map((time) => partOf({ project, start: at(time) }));
      const others = [
        partOf({ project, start: { start_time: '2026-11-21T00:00:00.000000Z' } }),
        partOf({ project, start: { start_time: '2026-11-19T23:59:59.999999Z' } }),
        partOf({ project: { rank: 2, id: randomUUID() }, start: at('01:00:00.000000') }),
      ];
      await mergeRuns(database, workspaceId, [...parts, ...others], store);
      await mergeRuns(database, await addWorkspace(), [partOf({ project, start: at('01:00:00') })], store);
      const key = ({ id, start }: (typeof parts)[number]) =>
        `${start.start_time.slice(0, -1).padEnd(26, '0')} ${id}`;
      const expected = parts.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)).map(({ id }) => id);
      for (const maxRows of [1, 2, 100]) {
        const pages = await readAll({ workspaceId, projectId, maxRows });
        expect(pages.flat().map(({ id }) => id)).toEqual(expected);
        expect(Math.max(...pages.map((page) => page.length))).toBe(Math.min(maxRows, times.length));
      }
      const [first, second] = (await readAll({ workspaceId, projectId })).flat();
      expect([first?.start_time, second?.start_time]).toEqual(['1795132800000000', '1795132800000001']);
    });

    it('end with the run whose payloads reach the limit, and have payloads of any size', async () => {
      const { store, database, addWorkspace } = open();
      const [workspaceId, projectId] = [await addWorkspace(), randomUUID()];
      const bytes = [400, 700, 10, 3_000_000, 10];
      const parts = bytes.map((size, second) =>
        partOf({
          ...{ project: { rank: 2, id: projectId }, start: at(`00:00:0${second}.000000`) },
          values: { inputs_json: Buffer.alloc(size, String(second)), outputs_json: Buffer.from('{}') },
        }),
      );
      await mergeRuns(database, workspaceId, parts, store);
      const columns = new Set<RunPageColumn>(['inputs', 'extra']);
      const pages = await readAll({ workspaceId, projectId, columns, maxBytes: 1_000 });
      expect(pages.map((page) => page.map(({ inputs }) => inputs?.length))).toEqual([
        [400, 700],
        [10, 3_000_000],
        [10],
      ]);
      const found = pages.flat();
      expect(found.map(({ inputs }) => String(inputs))).toEqual(
        bytes.map((size, second) => String(second).repeat(size)),
      );
      expect(found.map(({ extra }) => extra)).toEqual(bytes.map(() => null));
      expect(found.some((run) => 'outputs' in run || 'name' in run)).toBe(false);
    });

    it('have the columns that were asked for', async () => {
      const { store, database, addWorkspace } = open();
      const [workspaceId, projectId] = [await addWorkspace(), randomUUID()];
      const part = partOf({
        ...{ project: { rank: 2, id: projectId }, start: at('10:00:00.000001') },
        values: {
          ...{ name: 'one', run_type: 'llm', tags: ['a', 'b'], end_time: '2026-11-20T10:00:01.000002Z' },
          ...{
            error: 'no',
            error_json: Buffer.from('"no"'),
            first_token_time: '2026-11-20T10:00:00.500000Z',
          },
          usage_in_extra: { input_tokens: 1, total_tokens: 3, total_cost: '0.5' },
        },
      });
      await mergeRuns(database, workspaceId, [part], store);
      const columns = new Set<RunPageColumn>([
        ...(['name', 'run_type', 'tags', 'status', 'is_root', 'session_id', 'parent_run_id'] as const),
        ...([
          'end_time',
          'error',
          'first_token_time',
          'prompt_tokens',
          'completion_tokens',
          'total_cost',
        ] as const),
      ]);
      const [[run] = []] = await readAll({ workspaceId, projectId, columns });
      expect(run).toMatchObject({
        ...{ id: part.id, name: 'one', run_type: 'llm', tags: ['a', 'b'], status: 'error', is_root: true },
        ...{
          session_id: projectId,
          parent_run_id: null,
          end_time: '1795168801000002',
          error: '"no"',
        },
        ...{ first_token_time: '1795168800500000', prompt_tokens: '1', completion_tokens: null },
        total_cost: '0.500000000',
      });
    });
  });
}
