import { writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { Pace } from '../../../src/sidecar/records/record-delivery.ts';
import {
  RecordForwarder,
  type RecordForwarderOptions,
} from '../../../src/sidecar/records/record-forwarder.ts';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { createScratch } from '../../support/scratch.ts';
import { type Reaction, type RecordReceiver, createRecordReceiver } from './record-receiver.ts';

const token = 'sp_sb_canary-token-of-a-sandbox';
const fast: Partial<Pace> = { lingerMs: 1, firstPauseMs: 1, lastPauseMs: 4 };

type ForwarderSetup = AsyncDisposable & {
  readonly forwarder: RecordForwarder;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly tokenFile: string;
  readonly directory: string;
};

async function forwardTo(
  url: string,
  options: Partial<RecordForwarderOptions> = {},
): Promise<ForwarderSetup> {
  const scratch = await createScratch();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const tokenFile = await scratch.write('token', `${token}\n`);
  const forwarder = new RecordForwarder({
    url,
    tokenFile,
    caFile: undefined,
    log: createLog('trace', { write: (line) => void lines.push(JSON.parse(line)) }),
    ...options,
    pace: { ...fast, ...options.pace },
  });
  return {
    forwarder,
    lines,
    tokenFile,
    directory: scratch.path,
    async [Symbol.asyncDispose]() {
      await forwarder.close(0);
      await scratch[Symbol.asyncDispose]();
      expect(JSON.stringify(lines)).not.toContain('canary-token');
    },
  };
}

function addRecords(forwarder: RecordForwarder, count: number, sandbox = 'default', from = 0): void {
  for (let i = from; i < from + count; i += 1) forwarder.add(sandbox, `"time":"t","mark":${i}`);
}

const marksOf = (receiver: RecordReceiver): readonly unknown[] => receiver.stored.map(({ mark }) => mark);
const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

describe('a forwarder of records', () => {
  it('sends them in batches, in order, one request at a time, with the token', async () => {
    await using receiver = await createRecordReceiver();
    await using setup = await forwardTo(receiver.url, { pace: { maxCount: 500 } });
    addRecords(setup.forwarder, 1_234);
    await receiver.untilStored(1_234);
    await setup.forwarder.close(1_000);
    expect(marksOf(receiver)).toEqual(range(1_234));
    expect(receiver.stored.map(({ number }) => number)).toEqual(range(1_234));
    expect(receiver.batches.map(({ records }) => records.length)).toEqual([500, 500, 234]);
    expect(new Set(receiver.batches.map(({ token: shown, path }) => `${shown} ${path}`))).toEqual(
      new Set([`${token} /v1/sandbox-records`]),
    );
    expect([receiver.maxConcurrent, receiver.connections]).toEqual([1, 1]);
    expect(setup.forwarder.counts).toEqual({ accepted: 1_234, lost: 0 });
  });

  it('limits the length of a batch too, and sends a record above the limit alone', async () => {
    await using receiver = await createRecordReceiver();
    await using setup = await forwardTo(receiver.url, { pace: { maxChars: 1_000 } });
    for (const length of [400, 400, 400, 5_000, 10])
      setup.forwarder.add('default', `"x":"${'a'.repeat(length)}"`);
    await receiver.untilStored(5);
    expect(receiver.batches.map(({ records }) => records.length)).toEqual([2, 1, 1, 1]);
  });

  it('waits for more records until the batch is full', async () => {
    await using receiver = await createRecordReceiver();
    await using setup = await forwardTo(receiver.url, { pace: { lingerMs: 60_000, maxCount: 3 } });
    addRecords(setup.forwarder, 2);
    addRecords(setup.forwarder, 1, 'default', 2);
    await receiver.untilStored(3);
    expect(receiver.batches).toHaveLength(1);
  });

  const failures: readonly (readonly [string, Reaction])[] = [
    ['limits the rate', { status: 429, fields: { 'Retry-After': '0' } }],
    ['is unavailable', { status: 503 }],
    ['has an internal error', { status: 500 }],
    ['does not know the token yet', { status: 401 }],
    ['disconnects before it stores the batch', 'disconnect'],
    ['disconnects after it stored the batch', 'store and disconnect'],
    ['is another server that responds with 200', 'other server'],
  ];
  it.each(failures)('loses and duplicates no record when the platform %s', async (_, failure) => {
    await using receiver = await createRecordReceiver((_batch, index) =>
      index % 3 === 2 ? 'store' : failure,
    );
    await using setup = await forwardTo(receiver.url, { pace: { maxCount: 10 } });
    addRecords(setup.forwarder, 35);
    await receiver.untilStored(35);
    await setup.forwarder.close(5_000);
    expect(marksOf(receiver)).toEqual(range(35));
    expect(setup.forwarder.counts).toEqual({ accepted: 35, lost: 0 });
    const messages = setup.lines.map(({ msg }) => msg);
    expect(messages.slice(0, 2)).toEqual([
      'the platform did not accept the records; retrying',
      'the platform accepts records again',
    ]);
  });

  it('waits at least as long as Retry-After requires', async () => {
    const receivedMs: number[] = [];
    await using receiver = await createRecordReceiver((_, index) => {
      receivedMs.push(performance.now());
      return index === 0 ? { status: 429, fields: { 'Retry-After': '1' } } : 'store';
    });
    await using setup = await forwardTo(receiver.url);
    addRecords(setup.forwarder, 1);
    await receiver.untilStored(1);
    expect((receivedMs[1] ?? 0) - (receivedMs[0] ?? 0)).toBeGreaterThan(990);
  });

  it('retries when no response arrives in time', async () => {
    await using receiver = await createRecordReceiver((_, index) => (index === 0 ? 'stall' : 'store'));
    await using setup = await forwardTo(receiver.url, { timeoutMs: 50 });
    addRecords(setup.forwarder, 1);
    await receiver.untilStored(1);
    await setup.forwarder.close(1_000);
    expect(setup.lines[0]).toMatchObject({ cause: 'no response in time' });
  });

  it.each([400, 413, 422])(
    'drops only the invalid record of a batch that is rejected with %i',
    async (status) => {
      await using receiver = await createRecordReceiver(({ records }) =>
        records.some(({ mark }) => mark === 137) ? { status } : 'store',
      );
      await using setup = await forwardTo(receiver.url);
      addRecords(setup.forwarder, 500);
      await receiver.untilStored(499);
      await setup.forwarder.close(1_000);
      expect(marksOf(receiver)).toEqual(range(500).filter((mark) => mark !== 137));
      expect(setup.forwarder.counts).toEqual({ accepted: 499, lost: 1 });
      expect(receiver.batches.length).toBeLessThan(40);
      const lost = setup.lines.filter(
        ({ msg }) => msg === 'records were lost before they reached the platform',
      );
      expect(lost).toMatchObject([{ lost: 1, cause: `status ${status}` }]);
    },
  );

  it.each([302, 404])(
    'retries a batch after status %i, logs the status once, and follows no redirect',
    async (status) => {
      await using elsewhere = await createRecordReceiver();
      const fields = { Location: `${elsewhere.url}/v1/sandbox-records` };
      await using receiver = await createRecordReceiver((_, index) =>
        index === 0 ? { status, fields } : 'store',
      );
      await using setup = await forwardTo(receiver.url, { pace: { maxCount: 10 } });
      addRecords(setup.forwarder, 20);
      await receiver.untilStored(20);
      await setup.forwarder.close(1_000);
      expect(marksOf(receiver)).toEqual(range(20));
      expect(setup.forwarder.counts).toEqual({ accepted: 20, lost: 0 });
      expect(setup.lines.filter(({ cause }) => cause === `status ${status}`)).toHaveLength(1);
      expect(elsewhere.batches).toEqual([]);
    },
  );

  it('uses a replaced token without a restart', async () => {
    await using receiver = await createRecordReceiver((batch) =>
      batch.token === 'second' ? 'store' : { status: 401 },
    );
    await using setup = await forwardTo(receiver.url);
    addRecords(setup.forwarder, 1);
    await receiver.untilReceived(2);
    writeFileSync(setup.tokenFile, 'second');
    await receiver.untilStored(1);
  });

  it('sends the records of each sandbox with the token of that sandbox, and no sandbox delays another', async () => {
    await using receiver = await createRecordReceiver((batch) =>
      batch.token === 'token-one' ? 'stall' : 'store',
    );
    await using scratch = await createScratch();
    await scratch.write('one.token', 'token-one');
    await scratch.write('two.token', 'token-two');
    await using setup = await forwardTo(receiver.url, { tokenFile: `${scratch.path}/{sandbox}.token` });
    addRecords(setup.forwarder, 3, 'one');
    addRecords(setup.forwarder, 3, 'absent');
    addRecords(setup.forwarder, 3, 'two');
    await receiver.untilStored(3);
    expect(receiver.batches.map(({ token: shown }) => shown).toSorted()).toEqual(['token-one', 'token-two']);
    expect(new Set(receiver.batches.map(({ source }) => source)).size).toBe(2);
    await scratch.write('absent.token', 'token-three');
    receiver.release();
    await receiver.untilStored(9);
  });

  it('stays within its memory limit while the platform is down, and one sandbox cannot use all of it', async () => {
    await using receiver = await createRecordReceiver(() => ({ status: 503 }));
    await using scratch = await createScratch();
    for (const name of ['noisy', 'quiet']) await scratch.write(name, 'some-token');
    await using setup = await forwardTo(receiver.url, { tokenFile: `${scratch.path}/{sandbox}` });
    const { forwarder } = setup;
    const record = `"path":"${'a'.repeat(500)}"`;
    let accepted = 0;
    while (!forwarder.isBlocked('noisy')) {
      forwarder.add('noisy', record);
      accepted += 1;
    }
    // Half of 16 Mi characters.
    expect(accepted * 640).toBeGreaterThan(8_000_000);
    expect(accepted * 640).toBeLessThan(9_000_000);
    for (let i = 0; i < 100_000; i += 1) forwarder.add('noisy', record);
    expect(forwarder.counts.lost).toBeGreaterThan(80_000);
    expect(forwarder.isBlocked('quiet')).toBe(false);
    for (let i = 0; i < 1_000; i += 1) forwarder.add('quiet', record);
    expect(forwarder.isBlocked('quiet')).toBe(false);
    await receiver.untilReceived(1);
    expect(setup.lines.filter(({ msg }) => String(msg).includes('too many wait'))).toHaveLength(1);
  });

  it('drops the oldest failing queue when there are more queues than sandboxes can exist at a time', async () => {
    await using receiver = await createRecordReceiver();
    await using setup = await forwardTo(receiver.url, {
      tokenFile: '/nowhere/{sandbox}',
      pace: { firstPauseMs: 60_000, lastPauseMs: 60_000 },
    });
    for (let i = 0; i < 2_000; i += 1) addRecords(setup.forwarder, 1, `gone-${i}`);
    while (setup.lines.length < 2_000) await setImmediate();
    for (let i = 2_000; i < 2_010; i += 1) addRecords(setup.forwarder, 1, `gone-${i}`);
    while (setup.forwarder.counts.lost < 10) await setImmediate();
    const lost = setup.lines.filter(
      ({ msg }) => msg === 'records were lost before they reached the platform',
    );
    expect(lost.map(({ sandbox }) => sandbox)).toEqual(Array.from({ length: 10 }, (_, i) => `gone-${i}`));
  });

  it('sends queued records without delay when it closes', async () => {
    await using receiver = await createRecordReceiver((_, index) => (index === 0 ? 'disconnect' : 'store'));
    await using setup = await forwardTo(receiver.url, { pace: { lingerMs: 60_000, firstPauseMs: 60_000 } });
    addRecords(setup.forwarder, 700);
    await receiver.untilReceived(1);
    await setup.forwarder.close(10_000);
    expect(marksOf(receiver)).toEqual(range(700));
  });

  it('closes in time and reports the lost records when the platform responds to no request', async () => {
    await using receiver = await createRecordReceiver(() => 'stall');
    await using setup = await forwardTo(receiver.url);
    addRecords(setup.forwarder, 7);
    await receiver.untilReceived(1);
    const startedMs = performance.now();
    await setup.forwarder.close(100);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect(setup.forwarder.counts).toEqual({ accepted: 0, lost: 7 });
    expect(setup.lines.at(-1)).toMatchObject({
      lost: 7,
      msg: 'records were lost before they reached the platform',
    });
  });

  it('sends nothing to a platform whose certificate the configured CA did not sign', async () => {
    const [authority, other] = ['Right', 'Other'].map((commonName) =>
      createCertificateAuthority({ commonName }),
    );
    if (!authority || !other) throw new Error('two authorities were expected');
    const leaf = authority.issueLeaf({ host: '127.0.0.1', kind: 'ipv4' }, new Date());
    const tls = { cert: leaf.chainPem, key: leaf.keyPem };
    await using receiver = await createRecordReceiver(() => 'store', tls);
    await using scratch = await createScratch();
    const caFile = await scratch.write('ca.pem', other.certificatePem);
    await using setup = await forwardTo(receiver.url, { caFile });
    addRecords(setup.forwarder, 1);
    await setup.forwarder.close(100);
    expect(receiver.batches).toEqual([]);
    const rightCaFile = await scratch.write('right.pem', authority.certificatePem);
    await using trusting = await forwardTo(receiver.url, { caFile: rightCaFile });
    addRecords(trusting.forwarder, 1);
    await receiver.untilStored(1);
  });

  it('does not start with an unreadable or invalid token file, and does not quote the content', async () => {
    await expect(forwardTo('http://127.0.0.1:9', { tokenFile: '/nowhere/token' })).rejects.toThrow(
      '/nowhere/token cannot be read: ENOENT',
    );
    await using scratch = await createScratch();
    const tokenFile = await scratch.write('token', 'two\nlines');
    await expect(forwardTo('http://127.0.0.1:9', { tokenFile })).rejects.toThrow('one line of visible ASCII');
  });

  it('replaces a lone surrogate, so that no text makes a record undeliverable', async () => {
    await using receiver = await createRecordReceiver();
    await using setup = await forwardTo(receiver.url);
    setup.forwarder.add('default', JSON.stringify({ rule: 'a\ud800b', cause: '\\ud800' }).slice(1, -1));
    await receiver.untilStored(1);
    expect(receiver.stored[0]).toMatchObject({ rule: 'a\ufffdb', cause: '\\ud800' });
  });
});
