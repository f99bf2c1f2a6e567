// The public JavaScript client (langsmith/sandbox), unchanged, against the data plane.
import { type CommandHandle, Sandbox, SandboxClient } from 'langsmith/sandbox';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createDataPlaneScene, type DataPlaneScene } from './data-plane-scene.ts';

let scene: DataPlaneScene;
let scratch: Scratch;
let sandbox: Sandbox;
beforeAll(async () => {
  scene = await createDataPlaneScene();
  scratch = await createScratch();
  const client = new SandboxClient({ apiEndpoint: scene.url, apiKey: 'a-key', maxRetries: 0 });
  // As the client does with the response to a request for a sandbox.
  sandbox = Reflect.construct(Sandbox, [{ name: 'box', dataplane_url: scene.url }, client]);
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

const at = (...names: readonly string[]): string => join(scratch.path, ...names);

async function textOf(handle: CommandHandle): Promise<string> {
  const chunks = await Array.fromAsync(handle);
  return chunks.map(({ data }) => data).join('');
}

describe('the JavaScript client', () => {
  it('runs a command', async () => {
    const result = await sandbox.run('echo $A; pwd; echo e >&2; exit 3', {
      env: { A: 'b' },
      cwd: scratch.path,
    });
    expect(result).toEqual({ stdout: `b\n${scratch.path}\n`, stderr: 'e\n', exit_code: 3 });
  });

  it('runs a command as its output comes', async () => {
    const [out, err]: [string[], string[]] = [[], []];
    await sandbox.run('echo one; echo two >&2', {
      onStdout: (data) => out.push(data),
      onStderr: (data) => err.push(data),
    });
    expect([out.join(''), err.join('')]).toEqual(['one\n', 'two\n']);
  });

  it('writes to a command and kills it', async () => {
    const handle = await sandbox.run('read x; echo "got $x"; sleep 1000', { wait: false, closeInput: false });
    expect(handle.pid).toBeGreaterThan(1);
    handle.sendInput('input\n');
    let seen = '';
    for await (const { data } of handle) {
      seen += data;
      if (seen === 'got input\n') handle.kill();
    }
    expect((await handle.result).exit_code).toBe(137);
  });

  it('goes on by itself when its connections are cut in the middle', async () => {
    const release = at('release');
    const handle = await sandbox.run(`echo one; until test -e ${release}; do sleep 0.05; done; echo two`, {
      wait: false,
    });
    const seen: string[] = [];
    for await (const { data } of handle) {
      seen.push(data);
      if (data === 'one\n') {
        scene.cut();
        await scratch.write('release', '');
      }
    }
    expect(seen).toEqual(['one\n', 'two\n']);
    const again = await sandbox.reconnect(handle.commandId ?? '', { stdoutOffset: 4 });
    expect(await textOf(again)).toBe('two\n');
  });

  it('gets its own errors', async () => {
    await expect(sandbox.run('sleep 1000', { timeout: 1 })).rejects.toThrow(
      expect.objectContaining({ name: 'LangSmithCommandTimeoutError' }),
    );
    await expect(sandbox.run('true', { cwd: '/nonexistent' })).rejects.toThrow(
      expect.objectContaining({ name: 'LangSmithSandboxOperationError' }),
    );
    await expect(textOf(await sandbox.reconnect('none'))).rejects.toThrow('Command not found: none');
    await expect(sandbox.read(at('none'))).rejects.toThrow(
      expect.objectContaining({ name: 'LangSmithResourceNotFoundError' }),
    );
    await expect(sandbox.write('/dev/null/x', 'x')).rejects.toThrow(
      expect.objectContaining({ name: 'LangSmithResourceNotFoundError' }),
    );
    await expect(sandbox.run('kill -9 $PPID')).rejects.toThrow(
      expect.objectContaining({ name: 'LangSmithSandboxOperationError' }),
    );
  });

  it('writes and reads files', async () => {
    await sandbox.write(at('a', 'text'), 'héllo');
    expect(await readFile(at('a', 'text'), 'utf8')).toBe('héllo');
    const bytes = new Uint8Array(3_000_000).map((_, i) => i % 251);
    await sandbox.write(at('bytes'), bytes);
    expect(Buffer.compare(await sandbox.read(at('bytes')), bytes)).toBe(0);
  });

  it('reads parts of files', async () => {
    await sandbox.write(at('part'), '0123456789');
    const stat = await sandbox.stat(at('part'));
    expect(stat).toMatchObject({ size_bytes: 10, content_type: 'application/octet-stream' });
    const options = { start: 2, end: 4, ...(stat.etag === undefined ? {} : { ifRange: stat.etag }) };
    const chunk = await sandbox.readRange(at('part'), options);
    expect([Buffer.from(chunk.content).toString(), chunk.partial, chunk.start, chunk.total_bytes]).toEqual([
      '234',
      true,
      2,
      10,
    ]);
    expect(Buffer.from((await sandbox.readRange(at('part'), { suffixBytes: 2 })).content).toString()).toBe(
      '89',
    );
    await sandbox.write(at('part'), 'abcdefghij');
    expect(await sandbox.readRange(at('part'), options)).toMatchObject({ partial: false, start: 0 });
    await expect(sandbox.readRange(at('part'), { start: 99 })).rejects.toThrow('past the end');
  });

  it('finds files and lines', async () => {
    await sandbox.write(at('found', 'x.py'), 'import os\nTODO\n');
    await sandbox.write(at('found', 'sub', 'y.py'), 'TODO too\n');
    expect((await sandbox.ls(at('found'))).matches.map(({ path, is_dir }) => [path, is_dir])).toEqual([
      [at('found', 'sub'), true],
      [at('found', 'x.py'), false],
    ]);
    expect((await sandbox.glob('**/*.py', at('found'))).matches).toHaveLength(2);
    expect(await sandbox.grep('TODO', at('found'), { glob: '*.py', limit: 1 })).toMatchObject({
      matches: { length: 1 },
      truncated: true,
    });
  });
});
