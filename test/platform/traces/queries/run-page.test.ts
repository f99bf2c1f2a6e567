import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { countHeld, countLookedUp } from '../../../../src/platform/traces/queries/run-page.ts';
import type { FoundRun } from '../../../../src/platform/traces/trace-store.ts';

const run = (fields: Partial<FoundRun> = {}): FoundRun =>
  ({ name: 'a', tags: [], dotted_order: 'o', parent_run_ids: [], ...fields }) as unknown as FoundRun;
const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

it('a page has all runs that clients usually send', () => {
  const shown = times(100, { run: run(), descendants: { all: times(20, randomUUID()), direct: [] } });
  expect([countHeld(times(100, run())), countLookedUp(shown)]).toEqual([100, 100]);
});

it.each<[string, Partial<FoundRun>]>([
  ['names', { name: 'x'.repeat(60_000) }],
  ['tags', { tags: ['x'.repeat(60_000)] }],
  ['many tags', { tags: times(1_500, '') }],
  ['orders', { dotted_order: 'x'.repeat(60_000) }],
  ['parents', { parent_run_ids: times(1_500, randomUUID()) }],
])('a page of runs with long %s has fewer of them', (_, fields) =>
  expect(countHeld(times(10, run(fields)))).toBe(8),
);

const label = { n: 1, avg: null, values: { ['x'.repeat(100_000)]: 1 } };
const links = { presigned_url: 'x'.repeat(100_000), mime_type: 'a/b' };
it.each([
  ['feedback', { feedback: { good: label } }],
  ['attachments', { attachments: { 'attachment.a': links } }],
  ['descendants', { descendants: { all: times(2_500, ''), direct: [] } }],
  ['children', { descendants: { all: [], direct: times(2_500, '') } }],
])('a page of runs for which many %s are looked up has fewer of them', (_, looked) =>
  expect(countLookedUp(times(20, { run: run(), ...looked }))).toBe(10),
);

it('a page has at least one run, however much it holds', () => {
  const long = run({ name: 'x'.repeat(2_000_000) });
  const attachments = { a: { presigned_url: 'x'.repeat(2_000_000), mime_type: 'a/b' } };
  expect([countHeld([long, long]), countLookedUp(times(2, { run: long, attachments }))]).toEqual([1, 1]);
});
