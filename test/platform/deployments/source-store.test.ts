import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { openSourceStore, sourcePlaceOf } from '../../../src/platform/deployments/source-store.ts';
import { createScratch } from '../../support/scratch.ts';

it('sources of a machine are below its data directory, and those of a bucket are of every machine', async () => {
  await using scratch = await createScratch();
  const placeOf = (sources?: string) =>
    sourcePlaceOf({ dataDirectory: scratch.path, deployments: { sources } }, 'machine');
  const store = openSourceStore(placeOf());
  async function* content() {
    yield Buffer.from('one');
  }
  const { path } = await store.write('workspace', content());
  expect([store.machineId, await text(await store.read(path))]).toEqual(['machine', 'one']);
  expect(await text(await openSourceStore(placeOf()).read(path))).toBe('one');
  expect(openSourceStore(placeOf('s3://bucket')).machineId).toBeUndefined();
});

it('sources are refused for a while when the disk is full, with a reason for the caller', async () => {
  await using scratch = await createScratch();
  const store = openSourceStore({ directory: scratch.path, machineId: 'machine' });
  async function* full() {
    yield Buffer.from('one');
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  }
  await expect(store.write('workspace', full())).rejects.toMatchObject({
    ...{ kind: 'unavailable', retryMs: 60_000 },
    message: expect.stringMatching(/has no space left for sources: its operator/),
  });
  expect(await readdir(join(scratch.path, 'incoming'))).toEqual([]);
});
