// The box host as a whole: its directory is its own, one runs in it, and it ends when no platform is left.
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { type BoxHostOptions, createBoxHost } from '../../src/box-host/box-host.ts';
import { createBoxHostRuntime } from '../../src/platform/runtime/box-host-runtime.ts';
import { createAttachedEngine } from '../../src/box-host/attached-engine.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment } from '../support/spawned-process.ts';
import { sallyport } from './box-host-scene.ts';

function hostIn(directory: string, idleMs?: number, options: Partial<BoxHostOptions> = {}) {
  return createBoxHost({
    directory,
    attachedListen: { host: '127.0.0.1', first: 0, last: 0 },
    log: createLog('silent', { write: () => undefined }),
    program: { command: sallyport, config: {}, env: cleanEnvironment() },
    ...(idleMs !== undefined && { idleMs }),
    ...options,
  });
}

describe('a box host', () => {
  it('has a directory and a token that no other user can read', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const host = await hostIn(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await stat(join(directory, 'token'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(directory, 'token'), 'utf8')).toMatch(/^[\w-]{43}$/);
    await host.close();
  });

  it('is alone in its directory', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const host = await hostIn(directory);
    await expect(hostIn(directory)).rejects.toThrow(/another box host runs/);
    await host.close();
    await (await hostIn(directory)).close();
  });

  it('uses no directory that others can enter, and none with a long path', async () => {
    await using scratch = await createScratch();
    const open = join(scratch.path, 'open');
    await mkdir(open);
    await chmod(open, 0o755);
    await expect(hostIn(open)).rejects.toThrow(/mode 0700/);
    await expect(hostIn(join(scratch.path, 'x'.repeat(90)))).rejects.toThrow(/shorter data_dir/);
  });

  it('ends when no platform has read its changes for a while', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const host = await hostIn(directory, 1);
    await host.abandoned;
    await host.close();
  });

  it('closes what can be closed, and reports what cannot', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const lines: string[] = [];
    const engine = createAttachedEngine({ host: '127.0.0.1', first: 0, last: 0 }, () => new Set());
    const host = await hostIn(directory, undefined, {
      log: createLog('info', { write: (line) => void lines.push(line) }),
      createEngine: async () => ({ ...engine, close: () => Promise.reject(new Error('a mount is busy')) }),
    });
    await host.close();
    expect(lines.join('')).toMatch(/a mount is busy.*a part of the box host is not closed/);
    await (await hostIn(directory)).close();
  });

  it('that cannot be created leaves its directory to the next one', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const createEngine = () => Promise.reject(new Error('no engine'));
    await expect(hostIn(directory, undefined, { createEngine })).rejects.toThrow('no engine');
    await (await hostIn(directory)).close();
  });

  it('does not end while a platform reads them', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    const host = await hostIn(directory, 60_000);
    const runtime = await createBoxHostRuntime({ command: ['/nonexistent'], directory });
    const end = new AbortController();
    let isAbandoned = false;
    void host.abandoned.then(() => (isAbandoned = true));
    for await (const _ of runtime.changes(end.signal)) end.abort();
    expect(isAbandoned).toBe(false);
    await host.close();
  });
});
