// Who sends the bodies, and a bystander of another organization who asks all the time.
import { Agent, type ClientRequest, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Body } from './bodies.ts';

export type Target = { readonly port: number; readonly key: string };

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Resolves with the status, also of a response that came before the whole body was sent, whose connection may end at any time. */
export function send({ port, key }: Target, { path, fields, content }: Body): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const body = content();
  const length = Buffer.isBuffer(body) ? { 'Content-Length': body.length } : {};
  const sent = request({
    ...{ agent, port, path, method: 'POST', host: '127.0.0.1' },
    headers: { 'X-Api-Key': key, ...fields, ...length },
  });
  let status: number | undefined;
  sent.on('response', (response) => {
    status = response.statusCode ?? 0;
    response.resume().on('close', () => resolve(status ?? 0));
  });
  sent.on('error', (error) => (status === undefined ? reject(error) : resolve(status)));
  void write(sent, Buffer.isBuffer(body) ? inPieces(body) : body, () => status !== undefined);
  return promise;
}

const PIECE_BYTES = 64 * 1024;

function* inPieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES);
}

/** Piece by piece: a client that writes all at once sees no response before its connection has ended. Its errors are those of `sent`. */
async function write(
  sent: ClientRequest,
  pieces: Iterable<Buffer> | AsyncIterable<Buffer>,
  hasResponse: () => boolean,
): Promise<void> {
  for await (const piece of pieces) {
    if (hasResponse() || sent.destroyed) return;
    await new Promise<void>((done) => {
      sent.once('close', done);
      sent.write(piece, () => {
        sent.off('close', done);
        done();
      });
    });
  }
  sent.end();
}

/** Sends all bodies, as many at once as there are clients; returns the seconds. */
export async function sendAll(target: Target, bodies: readonly Body[], clients: number): Promise<number> {
  const startMs = performance.now();
  const rest = bodies.values();
  const client = async (): Promise<void> => {
    for (const body of rest) {
      const status = await send(target, body);
      if (status !== 202) throw new Error(`a body of runs was refused: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return (performance.now() - startMs) / 1000;
}

const ASK_EVERY_MS = 5;

/** The latencies of a bystander while `work` runs, in milliseconds. */
export async function beside<T>(
  { port, key }: Target,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly latencies: readonly number[] }> {
  const latencies: number[] = [];
  const stop = new AbortController();
  const asking = (async () => {
    while (!stop.signal.aborted) {
      const startMs = performance.now();
      await ask(port, key);
      latencies.push(performance.now() - startMs);
      await delay(ASK_EVERY_MS);
    }
  })();
  try {
    return { result: await work(), latencies };
  } finally {
    stop.abort();
    await asking;
  }
}

function ask(port: number, key: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const path = '/api/v1/sessions?limit=1';
  const sent = request({ agent, port, path, host: '127.0.0.1', headers: { 'X-Api-Key': key } });
  sent.on('response', (response) => {
    if (response.statusCode !== 200) reject(new Error(`the bystander got ${response.statusCode}`));
    response.resume().on('end', () => resolve());
  });
  sent.on('error', reject).end();
  return promise;
}
