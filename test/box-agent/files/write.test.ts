// Files that the agent writes: whole or not at all, in the place of what was there, and never through a link.
import { chmod, mkdir, readdir, readFile, readlink, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseNothing } from '../../../src/box-agent/protocol/messages.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { type SpawnedAgent, startAgent } from '../spawned-agent.ts';

describe('a written file', () => {
  let agent: SpawnedAgent;
  let scratch: Scratch;
  beforeAll(async () => {
    agent = startAgent();
    scratch = await createScratch();
  });
  afterAll(async () => {
    await agent[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  const at = (...names: readonly string[]): string => join(scratch.path, ...names);
  const begin = (path: string) =>
    agent.channel.call({ method: 'write', path }, { parseResult: parseNothing });
  async function write(path: string, content: string): Promise<void> {
    const call = begin(path);
    await call.write(Buffer.from(content));
    call.end();
    await call.result;
  }

  it('is there with its directories', async () => {
    await write(at('a', 'b', 'c'), 'text');
    expect(await readFile(at('a', 'b', 'c'), 'utf8')).toBe('text');
    expect(await readdir(at('a', 'b'))).toEqual(['c']);
  });

  it('may be empty, or larger than a window', async () => {
    await write(at('empty'), '');
    await write(at('large'), 'x'.repeat(1_000_000));
    expect([(await stat(at('empty'))).size, (await stat(at('large'))).size]).toEqual([0, 1_000_000]);
  });

  it('keeps the mode of the one that it replaces', async () => {
    await write(at('script'), 'one');
    await chmod(at('script'), 0o750);
    await write(at('script'), 'two');
    expect((await stat(at('script'))).mode & 0o777).toBe(0o750);
  });

  it('replaces a link, and leaves what the link leads to', async () => {
    await write(at('victim'), 'old');
    await symlink(at('victim'), at('link'));
    await write(at('link'), 'new');
    expect(await readFile(at('victim'), 'utf8')).toBe('old');
    expect(await readFile(at('link'), 'utf8')).toBe('new');
    await expect(readlink(at('link'))).rejects.toThrow('EINVAL');
  });

  it('is not there when the call is cancelled, and nothing else is', async () => {
    await mkdir(at('cut'));
    const call = begin(at('cut', 'file'));
    await call.write(Buffer.from('half'));
    await expect.poll(() => readdir(at('cut'))).toHaveLength(1);
    const idle = new Promise<void>((resolve) => (agent.channel.onIdle = resolve));
    call.cancel();
    await idle;
    expect(await readdir(at('cut'))).toEqual([]);
  });

  it('does not take the place of a directory', async () => {
    await mkdir(at('folder'));
    await expect(write(at('folder'), 'x')).rejects.toMatchObject({ code: 'NOT_A_FILE' });
    await expect(write(at('victim', 'below'), 'x')).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  it('is refused where no file can be', async () => {
    await expect(write('/dev/full/x', 'x')).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(write('/proc/x', 'x')).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(write('/proc/x/y/z', 'x')).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
