// Files through the agent as a process: ranges, and what is no file.
import { execFileSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeRange, parseFileStat, parseNothing } from '../../../src/box-agent/protocol/messages.ts';
import { openDataCall } from '../../../src/box-host/agents/call-data.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { type SpawnedAgent, startAgent } from '../spawned-agent.ts';

describe('a file', () => {
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

  const open = (path: string) =>
    openDataCall(
      agent.channel,
      { method: 'read', path },
      { parseHead: parseFileStat, parseResult: parseNothing },
    );

  async function read(path: string, offset: number, length: number): Promise<string> {
    const { call, data } = open(path);
    await call.head;
    await call.write(encodeRange({ offset, length }));
    const pieces = await Array.fromAsync(data());
    await call.result;
    return Buffer.concat(pieces).toString();
  }

  it('is read by ranges', async () => {
    const path = await scratch.write('digits', '0123456789');
    expect(await read(path, 0, 10)).toBe('0123456789');
    expect(await read(path, 3, 4)).toBe('3456');
  });

  it('is larger than a window', async () => {
    const path = await scratch.write('large', 'abcdefgh'.repeat(200_000));
    expect((await read(path, 0, 1_600_000)).length).toBe(1_600_000);
  });

  it('has a version that changes with it', async () => {
    const path = await scratch.write('changing', 'one');
    const versions: string[] = [];
    for (const text of ['one', 'two']) {
      await scratch.write('changing', text);
      const { call } = open(path);
      versions.push((await call.head).version);
      call.end();
      await call.result;
    }
    expect(new Set(versions).size).toBe(2);
  });

  it('that is shorter than the range fails', async () => {
    const path = await scratch.write('short', 'abc');
    await expect(read(path, 0, 10)).rejects.toMatchObject({ code: 'SHORT_FILE' });
  });

  it('is read through a link', async () => {
    const path = await scratch.write('target', 'text');
    await symlink(path, join(scratch.path, 'link'));
    expect(await read(join(scratch.path, 'link'), 0, 4)).toBe('text');
  });

  it('is not a directory, a pipe or missing', async () => {
    const pipe = join(scratch.path, 'pipe');
    execFileSync('mkfifo', [pipe]);
    await expect(open(scratch.path).call.head).rejects.toMatchObject({ code: 'NOT_A_FILE' });
    await expect(open(pipe).call.head).rejects.toMatchObject({ code: 'NOT_A_FILE' });
    await expect(open(join(scratch.path, 'none')).call.head).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(open('/dev/zero').call.head).rejects.toMatchObject({ code: 'NOT_A_FILE' });
  });
});
