import { chmod } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { SpawnedProcess, program, spawnSallyport } from '../support/spawned-process.ts';

describe('a proxy token that other users can read causes a warning, and is used, at the start of', () => {
  const isReported = ({ level, msg }: Readonly<Record<string, unknown>>): boolean =>
    level === 'warn' && String(msg).endsWith('token can be read by other users: chmod 600 it');

  it('proxy', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, 0o644);
    await using proxy = await spawnSallyport({ proxyConfig: {}, env: { SALLYPORT_AUTH_TOKEN_FILE: file } });
    await proxy.process.record(isReported);
  });

  it('run', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, 0o644);
    const args = [program, 'run', '--log', '-', '--', process.execPath, '--version'];
    await using child = new SpawnedProcess(process.execPath, args, {
      env: { SALLYPORT_AUTH_TOKEN_FILE: file },
    });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.records.filter(isReported)).toHaveLength(1);
  });
});
