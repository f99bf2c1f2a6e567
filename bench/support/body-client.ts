// The client for bodies and streams: a process of its own, controlled by messages, on Node's own HTTP clients over the
// connections of connection.ts. Every status, length and count is checked.
import { Agent, type IncomingMessage, request as requestH1 } from 'node:http';
import { type ClientHttp2Session, connect as connectH2 } from 'node:http2';
import type { Writable } from 'node:stream';
import { type Target, openTls } from './connection.ts';
import { PLACEHOLDER } from './heads.ts';

export type BodyCommand = {
  readonly target: Target;
  readonly protocol: 'h1' | 'h2';
  readonly path: string;
  /** The length of the request's body; undefined: no body. */
  readonly uploadBytes?: number;
  /** The length that the response must have; undefined: a count of the uploaded bytes, or events. */
  readonly downloadBytes?: number;
  /** The events that must arrive. */
  readonly events?: number;
  /** Requests one after the other on each connection, for this time; by default one request. */
  readonly durationMs?: number;
  readonly connections?: number;
};

export type BodyResult = {
  readonly seconds: number;
  /** Of each request, or of each event from its sending. */
  readonly latencies: Float64Array;
  readonly requests: number;
};

const PIECE: Buffer = Buffer.alloc(65_536, 'x');

/** One exchange on one connection; resolves with the body of the response, which is not stored when it is long. */
type Exchange = (onChunk: (chunk: Buffer) => void) => Promise<number | undefined>;

async function openExchange(command: BodyCommand): Promise<{ exchange: Exchange; close(): void }> {
  const { target, protocol, uploadBytes } = command;
  const { socket } = await openTls(target, protocol === 'h2' ? ['h2'] : ['http/1.1']);
  const authority = target.connectTo ?? target.host;
  const fields = {
    authorization: PLACEHOLDER,
    ...(uploadBytes === undefined ? {} : { 'content-length': uploadBytes }),
  };
  if (protocol === 'h2') {
    const session = connectH2(`https://${authority}`, { createConnection: () => socket });
    session.on('error', () => session.destroy());
    return {
      exchange: (onChunk) => exchangeH2(session, command, fields, onChunk),
      close: () => session.destroy(),
    };
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  const headers = { ...fields, host: authority };
  return {
    exchange: (onChunk) => exchangeH1(agent, command, headers, onChunk),
    close: () => socket.destroy(),
  };
}

async function exchangeH1(
  agent: Agent,
  { path, uploadBytes }: BodyCommand,
  headers: Record<string, string | number>,
  onChunk: (chunk: Buffer) => void,
): Promise<number | undefined> {
  const method = uploadBytes === undefined ? 'GET' : 'POST';
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = requestH1({ agent, path, method, headers }, resolve).on('error', reject);
    send(outgoing, uploadBytes).catch(reject);
  });
  for await (const chunk of response) onChunk(chunk as Buffer);
  return response.statusCode;
}

async function exchangeH2(
  session: ClientHttp2Session,
  { path, uploadBytes }: BodyCommand,
  fields: Record<string, string | number>,
  onChunk: (chunk: Buffer) => void,
): Promise<number | undefined> {
  const method = uploadBytes === undefined ? 'GET' : 'POST';
  const stream = session.request({ ':method': method, ':path': path, ...fields });
  let status: number | undefined;
  stream.on('response', (head) => (status = head[':status']));
  const sent = send(stream, uploadBytes);
  for await (const chunk of stream) onChunk(chunk as Buffer);
  await sent;
  return status;
}

async function send(stream: Writable, bytes = 0): Promise<void> {
  for (let left = bytes; left > 0; left -= PIECE.length)
    if (!stream.write(PIECE.subarray(0, left)))
      await new Promise<void>((resolve) => void stream.once('drain', resolve));
  stream.end();
}

async function run(command: BodyCommand): Promise<BodyResult> {
  const { durationMs = 0, connections = 1 } = command;
  const open = await Promise.all(Array.from({ length: connections }, () => openExchange(command)));
  const latencies: number[] = [];
  let requests = 0;
  const startMs = performance.now();
  const runOne = async (exchange: Exchange): Promise<void> => {
    do {
      const beganMs = performance.now();
      await checked(exchange, command, latencies);
      if (command.events === undefined) latencies.push(performance.now() - beganMs);
      requests += 1;
    } while (performance.now() - startMs < durationMs);
  };
  await Promise.all(open.map(({ exchange }) => runOne(exchange)));
  const seconds = (performance.now() - startMs) / 1000;
  for (const { close } of open) close();
  return { seconds, latencies: Float64Array.from(latencies), requests };
}

async function checked(exchange: Exchange, command: BodyCommand, latencies: number[]): Promise<void> {
  const { uploadBytes, downloadBytes, events } = command;
  let bytes = 0;
  let text = '';
  let count = 0;
  const status = await exchange((chunk) => {
    bytes += chunk.length;
    if (downloadBytes !== undefined) return;
    text += chunk.toString();
    if (events === undefined) return;
    const nowNs = process.hrtime.bigint();
    const found = [...text.matchAll(/data: (\d+)\n\n/g)];
    for (const [, sentNs = '0'] of found) latencies.push(Number(nowNs - BigInt(sentNs)) / 1e6);
    count += found.length;
    text = text.slice(text.lastIndexOf('\n\n') + 2);
  });
  if (status !== 200) throw new Error(`a response was ${status}: ${text}`);
  if (downloadBytes !== undefined && bytes !== downloadBytes) throw new Error(`${bytes} bytes were received`);
  if (uploadBytes !== undefined && text !== JSON.stringify({ bytes: uploadBytes }))
    throw new Error(`the origin did not receive ${uploadBytes} bytes: ${text}`);
  if (events !== undefined && count !== events) throw new Error(`${count} of ${events} events were received`);
}

process.on('message', (command: BodyCommand) => {
  run(command).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
