// The heap bytes of one injected request on fake sockets: a count, which a busy machine does not change.
import { getHeapStatistics } from 'node:v8';
import { expect, it } from 'vitest';
import { type FakeExchanges, createFakeExchanges } from '../../../bench/support/fake-exchanges.ts';
import { runs } from '../../support/run-size.ts';

/** Until the compiler has optimized everything that runs for each request. */
const WARM_UP_ROUNDS = runs(3_000, 1_000);
const ROUNDS = 500;
const SAMPLES = 7;
/** 3,180 are reached, 3,400 in a test run. A closure, an array or an object for each request is 50 to 150 more. */
const MAX_BYTES = 3_600;
/** Records take 530 of them, as text. */
const MAX_RECORD_BYTES = 650;

async function bytesOf(isRecorded: boolean): Promise<number> {
  const exchanges = await createFakeExchanges({ isRecorded });
  run(exchanges, WARM_UP_ROUNDS);
  // Compilers allocate too: the least is what the requests take.
  return Math.min(...Array.from({ length: SAMPLES }, () => sample(exchanges)));
}

function run(exchanges: FakeExchanges, rounds: number): void {
  for (let i = 0; i < rounds; i += 1) exchanges.round();
}

function sample(exchanges: FakeExchanges): number {
  const before = getHeapStatistics().total_allocated_bytes;
  run(exchanges, ROUNDS);
  return (getHeapStatistics().total_allocated_bytes - before) / (ROUNDS * exchanges.clients);
}

it('a request takes few bytes of the heap, and its record few of them', { tags: ['long'] }, async () => {
  const [recorded, unrecorded] = [await bytesOf(true), await bytesOf(false)];
  expect(recorded).toBeLessThan(MAX_BYTES);
  expect(recorded - unrecorded).toBeLessThan(MAX_RECORD_BYTES);
});

it('the exchanges on fake sockets are those of a proxy', async () => {
  const exchanges = await createFakeExchanges({ clients: 2 });
  run(exchanges, 3);
  expect(exchanges.last.request).toMatch(
    /^GET \/v1\/models\/\d+\?limit=\d+ HTTP\/1\.1\r\nHost: api\.localhost:8443\r\n/,
  );
  expect(exchanges.last.request).toMatch(/\r\nAuthorization: Bearer (?:abcdefghijklmnop){2}\r\n\r\n$/);
  expect(exchanges.last.request).not.toContain('placeholder');
  expect(exchanges.last.response).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"ok":true,"padding":"x+"\}$/);
  expect(exchanges.records.count).toBe(6);
  expect(JSON.parse(exchanges.records.last)).toMatchObject({
    rule: 'bench',
    injected: ['Authorization'],
    outcome: 'injected',
    upstream_reused: true,
    status: 200,
  });
});
