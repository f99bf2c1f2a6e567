import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { cleanEnvironment, type Finished, program, runToEnd } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const ca = (...args: string[]): Promise<Finished> => runToEnd(process.execPath, [program, 'ca', ...args]);
const pem = createTestAuthority('Proxy').certificatePem;

async function writeCa(state: Scratch, text: string): Promise<void> {
  await mkdir(join(state.path, 'public'));
  await state.write('public/ca.pem', text);
}

describe('ca', () => {
  it('shows the certificate, and never a key beside it', async () => {
    await using state = await createScratch();
    await writeCa(state, `${pem}-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----\n`);
    const { code, stdout } = await ca('show', '--state-dir', state.path);
    expect([code, stdout.trim()]).toEqual([0, pem.trim()]);
    expect((await ca('--state-dir', state.path)).stdout).toBe(stdout);
  });

  it('prints a bundle that begins with it', async () => {
    await using state = await createScratch();
    await writeCa(state, pem);
    const { code, stdout } = await ca('bundle', '--state-dir', state.path);
    expect([code, stdout.startsWith(pem.trim())]).toEqual([0, true]);
    expect(stdout.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(1);
  });

  it('prints its fingerprint, and with --json until when it is valid', async () => {
    await using state = await createScratch();
    await writeCa(state, pem);
    const { stdout } = await ca('fingerprint', '--state-dir', state.path);
    expect(stdout).toMatch(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\n$/);
    const json = JSON.parse((await ca('fingerprint', '--json', '--state-dir', state.path)).stdout);
    expect(json).toMatchObject({ fingerprint: stdout.trim(), valid_to: expect.stringMatching(/GMT$/) });
  });

  it.each([
    [['show'], undefined, /ca\.pem cannot be read \(ENOENT\).*sallyport proxy/],
    [['show'], 'nothing', /ca\.pem contains no PEM certificate/],
    [['show', 'bundle'], pem, /unexpected argument bundle\. Usage: sallyport ca/],
    [['renew'], pem, /unexpected argument renew\. Usage: sallyport ca \[OPTIONS\] show \| bundle \|/],
    [['rotate'], undefined, /ca\.pem cannot be read \(ENOENT\).*sallyport proxy/],
  ])('%j with %s is refused', async (args, text, message) => {
    await using state = await createScratch();
    if (text !== undefined) await writeCa(state, text);
    const { code, stdout, stderr } = await ca(...args, '--state-dir', state.path);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)]);
  });
});

/** Says on standard error when the time is over that open handles may keep a process which has ended. */
const AT_THE_END = `data:text/javascript,
  import { writeSync } from 'node:fs';
  const wait = globalThis.setTimeout;
  globalThis.setTimeout = (run, ms, ...rest) =>
    ms === 250 ? wait(() => { writeSync(2, 'over'); run(); }, 0) : wait(run, ms, ...rest);`;

describe('output that is longer than a pipe', () => {
  it('is read whole by a reader that is slow', async () => {
    await using state = await createScratch();
    await writeCa(state, pem);
    const whole = (await ca('bundle', '--state-dir', state.path)).stdout;
    expect(whole.length).toBeGreaterThan(65_536);
    const args = ['--import', AT_THE_END, program, 'ca', 'bundle', '--state-dir', state.path];
    const child = spawn(process.execPath, args, {
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await once(child.stderr, 'data');
    expect(await text(child.stdout)).toBe(whole);
  });

  it.runIf(existsSync('/dev/full'))('that cannot be written is an error in one line', async () => {
    await using state = await createScratch();
    await writeCa(state, pem);
    const bundle = `'${process.execPath}' '${program}' ca bundle --state-dir '${state.path}'`;
    const { code, stderr } = await runToEnd('sh', ['-c', `${bundle} > /dev/full`]);
    expect([code, stderr]).toEqual([1, 'sallyport: the output cannot be written (ENOSPC)\n']);
  });

  it('may have a reader that ends before it', async () => {
    await using state = await createScratch();
    await writeCa(state, pem);
    const bundle = `'${process.execPath}' '${program}' ca bundle --state-dir '${state.path}'`;
    const { stdout, stderr } = await runToEnd('sh', ['-c', `{ ${bundle}; echo "code $?" >&2; } | head -n 1`]);
    expect([stdout, stderr]).toEqual(['-----BEGIN CERTIFICATE-----\n', 'code 0\n']);
  });
});
