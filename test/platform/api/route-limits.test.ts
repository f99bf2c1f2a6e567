import { expect, it } from 'vitest';
import { anyone } from '../../../src/platform/api/access.ts';
import { createRouteLimits } from '../../../src/platform/api/route-limits.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';

const shared = {
  method: 'POST',
  path: '/a',
  tag: 'Test',
  summary: 'a route',
  access: anyone,
  tracking: { untracked: 'a test' },
  responses: { 204: null },
  handle: async () => undefined,
} as const;
const route: Route = defineRoute({ ...shared, limits: { running: { total: 3, perCaller: 2 } } });
const other: Route = defineRoute({ ...shared, limits: { running: { total: 1, perCaller: 1 } } });
const unlimited: Route = defineRoute(shared);

it('requests of a route are limited for each caller and in total, with a retry time, and a failed one frees its place', async () => {
  const limit = createRouteLimits();
  const run = <T>(caller: string, work: () => Promise<T>): Promise<T> => limit(route, caller, work);
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = [run('a', () => promise), run('a', () => promise)];
  await expect(run('a', async () => 1)).rejects.toMatchObject({ kind: 'too_many', retryMs: 1_000 });
  const second = run('b', () => promise);
  await expect(run('c', async () => 1)).rejects.toMatchObject({ kind: 'too_many' });
  // Another route has places of its own, and a route without a limit any number.
  expect(await limit(other, 'a', async () => 1)).toBe(1);
  expect(await Promise.all([1, 2, 3, 4].map((i) => limit(unlimited, 'a', async () => i)))).toHaveLength(4);
  resolve();
  await Promise.all([...first, second]);
  await expect(run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await Promise.all([1, 2].map((i) => run('a', async () => i)))).toEqual([1, 2]);
});
