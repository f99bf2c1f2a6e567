import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { openFileStore } from '../../../../src/platform/store/files/file-store.ts';
import {
  artifactPlaceOf,
  createArtifacts,
  openArtifacts,
} from '../../../../src/platform/traces/artifacts/artifacts.ts';
import { openS3Server, s3Credentials } from '../../../support/s3-server.ts';
import { createScratch } from '../../../support/scratch.ts';

async function* pieces(...all: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const one of all) yield Buffer.from(one);
}

async function filesOf(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
}

describe('the place of attachments', () => {
  it('is in the data directory, in another directory, or in a bucket', () => {
    const placeOf = (artifacts?: string) =>
      artifactPlaceOf({ dataDirectory: '/data', traces: { artifacts } });
    expect(placeOf()).toEqual({ directory: '/data/trace-artifacts' });
    expect(placeOf('/srv/a')).toEqual({ directory: '/srv/a' });
    expect(placeOf('a')).toEqual({ directory: resolve('a') });
    expect(placeOf('s3://b/p')).toEqual({ directory: '/data/trace-artifacts', bucket: 's3://b/p' });
  });

  it('has contents under random names, which nobody else of the machine can read', async () => {
    await using scratch = await createScratch();
    const artifacts = openArtifacts({ dataDirectory: scratch.path, traces: { artifacts: undefined } });
    const written = await artifacts.write(pieces('one ', 'two'));
    expect(written).toEqual({ object: expect.stringMatching(/^\d{10}\/[0-9a-f-]{36}$/), size: 7 });
    expect(await text(await artifacts.read(written.object))).toBe('one two');
    const [file = ''] = await filesOf(scratch.path);
    expect([(await stat(file)).mode & 0o777, (await stat(join(file, '..'))).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    await artifacts.discard([written.object, '2026112000/gone']);
    expect(await filesOf(scratch.path)).toEqual([]);
  });

  it('has nothing of a content that breaks off, whose error is thrown unchanged', async () => {
    await using scratch = await createScratch();
    const artifacts = openArtifacts({ dataDirectory: scratch.path, traces: { artifacts: undefined } });
    const left = Object.assign(new Error('the client left'), { code: 'ENOSPC' });
    async function* broken() {
      yield* pieces('one');
      throw left;
    }
    await expect(artifacts.write(broken())).rejects.toBe(left);
    expect(await filesOf(scratch.path)).toEqual([]);
  });

  it('that is full refuses with 503', async () => {
    await using scratch = await createScratch();
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const write = async (_: string, content: AsyncIterable<Uint8Array>): Promise<never> => {
      await Array.fromAsync(content);
      throw full;
    };
    const files = { ...openFileStore({ directory: scratch.path }), write };
    const error = await createArtifacts(files)
      .write(pieces('x'))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      ...{ kind: 'unavailable', message: expect.stringContaining('no space'), cause: full },
    });
  });

  it('removes what a request has written in small groups, all of it where some cannot be removed', async () => {
    await using scratch = await createScratch();
    let [running, most, removed] = [0, 0, 0];
    const remove = async (object: string): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      removed += 1;
      if (object === '3') throw new Error('not there');
    };
    const artifacts = createArtifacts({ ...openFileStore({ directory: scratch.path }), remove });
    await artifacts.discard(Array.from({ length: 100 }, (_, at) => String(at)));
    expect([removed, most]).toEqual([100, 16]);
  });

  it('that cannot be written refuses with 503, and only the cause names its path', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'file');
    await writeFile(file, '');
    await chmod(file, 0o600);
    const artifacts = openArtifacts({ dataDirectory: scratch.path, traces: { artifacts: file } });
    const error = await artifacts.write(pieces('x')).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DomainError);
    expect(error).toMatchObject({
      kind: 'unavailable',
      cause: { code: expect.stringMatching(/^ENOTDIR|EEXIST$/) },
    });
    expect((error as Error).message).not.toContain(scratch.path);
  });
});

describe('the place of attachments in a bucket', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it('has the same, and leaves nothing on the machine', async () => {
    for (const [name, value] of Object.entries(s3Credentials)) vi.stubEnv(name, value);
    await using scratch = await createScratch();
    await using s3 = await openS3Server();
    const bucket = `s3://traces/a?endpoint=${encodeURIComponent(s3.endpoint)}`;
    const artifacts = openArtifacts({ dataDirectory: scratch.path, traces: { artifacts: bucket } });
    const { object, size } = await artifacts.write(pieces('one ', 'two'));
    expect([[...s3.objects.keys()], size]).toEqual([[`/traces/a/${object}`], 7]);
    expect(await text(await artifacts.read(object))).toBe('one two');
    expect(await filesOf(scratch.path)).toEqual([]);
    await artifacts.discard([object]);
    expect(s3.objects.size).toBe(0);
  });
});
