// The payloads of a run are unpacked within a limit that they have together.
import { randomBytes } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createUnpacking } from '../../../../src/platform/bulk-export/files/run-payloads.ts';
import type { PagedRun } from '../../../../src/platform/traces/contract.ts';
import { unpackWithin } from '../../../../src/platform/traces/runs/payload.ts';

const fields = ['inputs', 'outputs', 'error', 'extra', 'events'] as const;
const unpackOf = async (run: Partial<PagedRun>, maxBytes: number) =>
  createUnpacking({ fields, unpack: unpackWithin, maxBytes })({ id: 'r', start_time: '1', ...run });

const plain = (bytes: number): Buffer => Buffer.alloc(bytes, 'a');
/** Unpacked by a thread. */
const incompressible = (bytes: number): Buffer => zstdCompressSync(randomBytes(bytes));

describe('the payloads of a run', () => {
  it('are unpacked, short ones at once', async () => {
    const given = { inputs: '"a"', outputs: zstdCompressSync('"b"'), extra: null, events: plain(3) };
    expect(await unpackOf(given, 100)).toEqual({
      ...{ inputs: '"a"', outputs: Buffer.from('"b"'), events: plain(3) },
    });
    const large = await unpackOf({ outputs: incompressible(50_000), events: plain(3) }, 60_000);
    expect([large.outputs?.length, large.events?.length]).toEqual([50_000, 3]);
  });

  it.each<[string, Partial<PagedRun>, string]>([
    ['that are stored as they are', { inputs: plain(600), outputs: plain(600) }, 'outputs'],
    ['that are texts', { inputs: 'a'.repeat(600), events: 'a'.repeat(600) }, 'events'],
    ['that are compressed', { inputs: zstdCompressSync(plain(600)), error: plain(401) }, 'error'],
    ['of which one has more by itself', { extra: zstdCompressSync(plain(1_001)) }, 'extra'],
  ])('%s have a limit together, and the failure names the first one above it', async (_, run, field) => {
    const failure = await unpackOf(run, 1_000).catch((error: unknown) => error);
    expect(failure).toMatchObject({ kind: 'resources', isRetryable: true });
    expect(String(failure)).toContain(`with ${field}: export without this column`);
  });

  it('that a thread unpacks have it too', async () => {
    const each = incompressible(100_000);
    await expect(unpackOf({ inputs: each, outputs: each, error: each }, 250_000)).rejects.toThrow(
      'with error',
    );
  });

  it('that are no frames are a failure of the run', async () => {
    const broken = zstdCompressSync(plain(100)).subarray(0, 12);
    await expect(unpackOf({ outputs: broken }, 1_000)).rejects.toMatchObject({
      ...{ kind: 'serialization', message: 'The outputs of the trace run r cannot be read' },
    });
  });
});
