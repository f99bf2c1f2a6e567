// The other tests of commands start the bundle. The sources of a checkout, which a developer starts, do the same.
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { type Finished, launcher, program, runToEnd, SpawnedProcess } from '../support/spawned-process.ts';
import { everyNth } from '../support/run-size.ts';

async function finish(file: string, args: readonly string[]): Promise<Finished> {
  return runToEnd(process.execPath, [file, ...args]);
}

describe('the sources', () => {
  it('are not what the other tests start', () => {
    expect(program).not.toBe(launcher);
  });

  everyNth(
    3,
    [
      [['--help'], 0],
      [['--version'], 0],
      [['check', '/nonexistent'], 2],
      [['explain', 'https://api.test/'], 2],
      [['env', '--listen', '127.0.0.1:0'], 2],
      [['platform', 'serf'], 2],
      [['audit', 'check'], 2],
      [['run', '--', 'sh', '-c', 'echo "${HTTPS_PROXY%:*}"; exit 7'], 7],
    ],
    (some, options) =>
      it.each(some)('respond to %j as the bundle does', options, async (args, code) => {
        const [ofSources, ofBundle] = await Promise.all([finish(launcher, args), finish(program, args)]);
        expect(ofSources).toEqual(ofBundle);
        expect(ofSources.code).toBe(code);
      }),
  );

  it('run a proxy until it is stopped', async () => {
    await using scratch = await createScratch();
    const env = {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
    };
    await using child = new SpawnedProcess(process.execPath, [launcher, 'proxy'], { env });
    await child.record(({ msg }) => msg === 'ready');
    child.kill('SIGTERM');
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });
});
