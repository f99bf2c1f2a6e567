// Glob and grep by the agent as a process.
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CallParams,
  parseGlobMatch,
  parseGrepMatch,
  parseSearched,
} from '../../../src/box-agent/protocol/messages.ts';
import { openDataCall, readLines } from '../../../src/box-host/agents/call-data.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { type SpawnedAgent, startAgent } from '../spawned-agent.ts';

describe('a search', () => {
  let agent: SpawnedAgent;
  let scratch: Scratch;
  beforeAll(async () => {
    agent = startAgent();
    scratch = await createScratch();
    for (const folder of ['src/deep', 'empty']) await mkdir(join(scratch.path, folder), { recursive: true });
    await writeFile(join(scratch.path, 'a.ts'), 'one\ntwo TODO\n');
    await writeFile(join(scratch.path, 'src/b.ts'), 'TODO: three\n');
    await writeFile(join(scratch.path, 'src/deep/c.md'), '(TODO)');
    await writeFile(join(scratch.path, 'binary'), 'TODO\0');
    await symlink('..', join(scratch.path, 'src/up'));
  });
  afterAll(async () => {
    await agent[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  async function search<T extends { readonly path: string }>(params: CallParams, parse: (line: Buffer) => T) {
    const { call, data } = openDataCall(agent.channel, params, { parseResult: parseSearched });
    const lines = await Array.fromAsync(readLines(data()));
    const { truncated } = await call.result;
    const below = (path: string): string => path.slice(scratch.path.length + 1);
    const found = lines.map(parse).map((match) => ({ ...match, path: below(match.path) }));
    return { found: found.toSorted((a, b) => (a.path < b.path ? -1 : 1)), truncated };
  }
  const glob = (pattern: string, limit = 100, path = scratch.path) =>
    search({ method: 'glob', path, pattern, limit }, parseGlobMatch);
  const grep = (pattern: string, glob: string | null = null, limit = 100, path = scratch.path) =>
    search({ method: 'grep', path, pattern, glob, limit }, parseGrepMatch);

  it('lists a folder', async () => {
    const { found, truncated } = await glob('*');
    expect(found.map(({ path, isDirectory }) => [path, isDirectory])).toEqual([
      ['a.ts', false],
      ['binary', false],
      ['empty', true],
      ['src', true],
    ]);
    expect(truncated).toBe(false);
    expect(found[0]?.size).toBe(13);
    expect(Math.abs((found[0]?.mtimeMs ?? 0) - Date.now())).toBeLessThan(600_000);
  });

  it('finds files at any depth, and follows no link', async () => {
    expect((await glob('**/*.ts')).found.map(({ path }) => path)).toEqual(['a.ts', 'src/b.ts']);
    expect((await glob('src/*')).found.map(({ path }) => path)).toEqual(['src/b.ts', 'src/deep', 'src/up']);
  });

  it('stops at the limit and says so', async () => {
    expect(await glob('**', 2)).toMatchObject({ truncated: true, found: { length: 2 } });
    expect(await grep('TODO', null, 1)).toMatchObject({ truncated: true, found: { length: 1 } });
  });

  it('finds lines with a literal text in text files', async () => {
    const { found, truncated } = await grep('TODO');
    expect(found).toEqual([
      { path: 'a.ts', line: 2, text: 'two TODO' },
      { path: 'src/b.ts', line: 1, text: 'TODO: three' },
      { path: 'src/deep/c.md', line: 1, text: '(TODO)' },
    ]);
    expect(truncated).toBe(false);
    expect((await grep('T.DO')).found).toEqual([]);
  });

  it('finds them in files by name, by path, and in one file', async () => {
    expect((await grep('TODO', '*.md')).found).toHaveLength(1);
    expect((await grep('TODO', 'src/*.ts')).found).toHaveLength(1);
    expect((await grep('TODO', null, 9, join(scratch.path, 'a.ts'))).found).toHaveLength(1);
  });

  it('below what is missing or no folder fails', async () => {
    await expect(glob('*', 1, '/nonexistent')).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(glob('*', 1, join(scratch.path, 'a.ts'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(grep('x', null, 1, '/nonexistent')).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
