import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { FailureSums } from '../../../../src/platform/api/shares/failure-sums.ts';
import { entryOf } from '../../audit/audit-entry.ts';

it('sums are kept for each key, operation and status, without the ids of one request', () => {
  const sums = new FailureSums();
  const [one, other] = [randomUUID(), randomUUID()];
  const failure = { ...entryOf(one), isSuccess: false, keyId: 'a', status: 403, resources: [randomUUID()] };
  for (const keyId of ['a', 'a', 'b']) sums.add({ ...failure, keyId });
  sums.add({ ...failure, status: 404 });
  sums.add({ ...failure, organizationId: other });
  const taken = sums.take();
  expect(taken.map((entries) => entries.map((entry) => [entry.keyId, entry.status, entry.requests]))).toEqual(
    [
      [
        ['a', 403, 2],
        ['b', 403, 1],
        ['a', 404, 1],
      ],
      [['a', 403, 1]],
    ],
  );
  expect(taken.flat().flatMap(({ resources }) => resources)).toEqual([]);
  expect(sums.take()).toEqual([]);
});

it('an organization has at most 65 of them, and no failure is left out', () => {
  const sums = new FailureSums();
  const failure = { ...entryOf(randomUUID()), isSuccess: false };
  for (let at = 0; at < 1_000; at += 1) sums.add({ ...failure, keyId: `key ${at}` });
  const [entries = []] = sums.take();
  expect(entries).toHaveLength(65);
  expect(entries.reduce((sum, { requests = 0 }) => sum + requests, 0)).toBe(1_000);
  expect(entries.at(-1)).toMatchObject({ keyId: undefined, requests: 936 });
});

it('sums of sessions are kept for each session, and the rest names none', () => {
  const sums = new FailureSums();
  const failure = { ...entryOf(randomUUID()), isSuccess: false, keyId: undefined };
  const sessionOf = (at: number) => ({ id: `session ${at}`, keyId: 'one key' });
  for (let at = 0; at < 100; at += 1) sums.add({ ...failure, session: sessionOf(at) });
  sums.add({ ...failure, session: sessionOf(0) });
  const [entries = []] = sums.take();
  expect(entries.slice(0, 3).map(({ session, requests }) => [session?.id, requests])).toEqual([
    ['session 0', 2],
    ['session 1', 1],
    ['session 2', 1],
  ]);
  expect(entries.at(-1)).toMatchObject({ session: undefined, requests: 36 });
});
