// The reader of the proxy's output stops: a log collector that hangs must not decide when the proxy ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { cleanEnvironment, program } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';

const nameTable = join(import.meta.dirname, '..', 'support', 'name-table.ts');
const DRAIN_MS = 100;
const CLOSE_MS = 2_000;
/** Each leaves a record of some 700 bytes; more than the buffers between two processes hold. */
const REQUESTS = 1_500;
const longPath = `/${'a'.repeat(500)}`;

function spawnProxy(scratch: Scratch): ChildProcess {
  return spawn(process.execPath, ['--import', nameTable, program, 'proxy'], {
    env: cleanEnvironment({
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
      SALLYPORT_TIMEOUTS_DRAIN_MS: String(DRAIN_MS),
    }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Reads standard output up to the port that the proxy names, and not a byte more. */
async function portOf({ stdout }: ChildProcess): Promise<number> {
  let text = '';
  const found = Promise.withResolvers<number>();
  stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    const [, port] = /"proxy":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(text) ?? [];
    if (port === undefined) return;
    stdout.pause();
    found.resolve(Number(port));
  });
  return found.promise;
}

it('SIGTERM ends the process in time and with code 0 while its standard output is not read', {
  tags: ['long'],
}, async () => {
  await using scratch = await createScratch();
  const child = spawnProxy(scratch);
  try {
    await using client = await WireClient.connect(await portOf(child));
    for (let sent = 0; sent < REQUESTS; sent += 1) {
      // Port 9 of the name table's loopback: refused at once, and recorded.
      await client.send(`GET http://a.test:9${longPath} HTTP/1.1\r\nHost: a.test:9\r\n\r\n`);
      expect((await client.readResponse()).head.status).toBe(502);
    }
    const exited = once(child, 'exit');
    const startedMs = performance.now();
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    const tookMs = performance.now() - startedMs;
    // Had it ended before the limit of the sink, nothing would have been stuck.
    expect(tookMs).toBeGreaterThan(CLOSE_MS);
    expect(tookMs).toBeLessThan(DRAIN_MS + CLOSE_MS + 1_000);
  } finally {
    child.kill('SIGKILL');
  }
});
