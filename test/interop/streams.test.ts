// Long and large: bodies that must not be buffered, events that must not be delayed, and a response that is silent for
// longer than every timeout except its own.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../support/recording-origin.ts';
import { SpawnedProcess } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';
import { clientEnvironment, isInstalled, runClient } from './client-programs.ts';
import { createScene, type Scene } from './interop-scene.ts';

const MEBIBYTE = 1 << 20;
const BODY_BYTES = 100 * MEBIBYTE;
const SAMPLE_MS = 100;

/** The highest resident memory of the proxy while `work` runs, sampled ten times a second from outside. */
async function peakOf(scene: Scene, work: () => Promise<void>): Promise<number> {
  let peak = 0;
  const sample = (): void => {
    peak = Math.max(peak, scene.sallyport.process.usage().residentBytes);
  };
  const timer = setInterval(sample, SAMPLE_MS);
  try {
    await work();
    sample();
  } finally {
    clearInterval(timer);
  }
  return peak;
}

async function writeBody(scene: Scene): Promise<{ file: string; sha256: string }> {
  const file = join(scene.scratch.path, 'body');
  await using handle = await open(file, 'w');
  const block = Buffer.alloc(MEBIBYTE, 'body of a large request ');
  for (let written = 0; written < BODY_BYTES; written += block.length) await handle.write(block);
  const hash = createHash('sha256');
  for await (const piece of createReadStream(file)) hash.update(piece);
  return { file, sha256: hash.digest('hex') };
}

/** Receives an upload, then sends as much back. */
async function mirror(exchange: Exchange): Promise<void> {
  const { length, sha256 } = await exchange.readBody();
  await exchange.send(
    `HTTP/1.1 200 OK\r\nX-Received: ${length} ${sha256}\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`,
  );
  const block = Buffer.alloc(MEBIBYTE, 'd');
  for (let sent = 0; sent < BODY_BYTES; sent += block.length) await exchange.send(block);
}

describe.runIf(isInstalled('curl'))('through the proxy', () => {
  it('100 MiB are sent and received, and its memory grows by at most 32 MiB', {
    tags: ['long'],
  }, async () => {
    await using scene = await createScene({ respond: mirror });
    const { file, sha256 } = await writeBody(scene);
    const url = `https://good.test:${scene.origin.port}/large`;
    const args = ['-H', 'Expect:', '--data-binary', `@${file}`, '--output', '/dev/null'];
    const format = '%header{x-received} %{size_download}';
    const transfer = async (): Promise<void> => {
      const { code, stdout } = await runClient('curl', [...args, '--write-out', format, url], scene.proxy);
      expect({ code, stdout }).toEqual({ code: 0, stdout: `${BODY_BYTES} ${sha256} ${BODY_BYTES}` });
    };
    // The baseline is a proxy after its first requests: its code is compiled and its buffers exist.
    await transfer();
    const baseline = scene.sallyport.process.usage().residentBytes;
    const peak = await peakOf(scene, transfer);
    expect(peak - baseline).toBeLessThan(32 * MEBIBYTE);
  });

  it('each server-sent event arrives before the next one is sent', async () => {
    const arrived: (() => void)[] = [];
    const events = Array.from({ length: 20 }, (_, i) => `data: event ${i}\n\n`);
    await using scene = await createScene({
      async respond(exchange) {
        await exchange.send(
          'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
        );
        for (const event of events) {
          const seen = new Promise<void>((resolve) => arrived.push(resolve));
          await exchange.send(`${event.length.toString(16)}\r\n${event}\r\n`);
          await seen;
        }
        await exchange.send('0\r\n\r\n');
      },
    });
    const url = `https://good.test:${scene.origin.port}/events`;
    await using curl = new SpawnedProcess('curl', ['--silent', '--no-buffer', url], {
      env: clientEnvironment(scene.proxy),
    });
    for (const [i] of events.entries()) {
      await curl.output((text) => text.includes(`data: event ${i}\n\n`));
      arrived[i]?.();
    }
    expect(await curl.exited).toEqual({ code: 0, signal: null });
    expect(curl.stdout).toBe(events.join(''));
  });

  it('a response can be silent for longer than every timeout except its own', async () => {
    const short = [
      'HEAD',
      'DNS',
      'CONNECT',
      'SNIFF',
      'HANDSHAKE',
      'CLIENT_IDLE',
      'TUNNEL_IDLE',
      'HALF_CLOSED',
      'CONTINUE',
    ];
    const env = Object.fromEntries(short.map((name) => [`SALLYPORT_TIMEOUTS_${name}_MS`, '1000']));
    const gate = Promise.withResolvers<void>();
    await using scene = await createScene({
      env,
      async respond(exchange) {
        await gate.promise;
        await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate');
      },
    });
    const response = runClient('curl', [`https://good.test:${scene.origin.port}/slow`], scene.proxy);
    await scene.origin.request(0);
    // Two silent connections, one after the other, each run into a timeout: by then the silence of the response was
    // longer than all of them.
    for (let i = 0; i < 2; i++) {
      await using silent = await WireClient.connect(scene.sallyport.port);
      await silent.openTunnel(`good.test:${scene.origin.port}`);
      await silent.finished;
    }
    gate.resolve();
    expect(await response).toMatchObject({ code: 0, stdout: 'late' });
  });
});
