// One client of a row of the stage `load`: uses its entry point, takes its steps, and returns the responses that it got.
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { WireClient } from '../../support/wire-client.ts';
import type { Bytes, LoadScript, LoadStep } from './load-script.ts';

export type Place = {
  readonly port: number;
  readonly caPem: string;
  /** `<NAME>` becomes its value. */
  readonly names: Readonly<Record<string, string>>;
  /** The port of the host with a rule. */
  readonly hostPort: number;
  /** Resolves when a host has the head of a request of client `n`, which is the end of its target. */
  arrived(n: number): Promise<unknown>;
  blockSink(): void;
};

/** A client that stopped reading does not notice the end of its connection; the records of the row show it. */
export type Played = { readonly client: WireClient; readonly responses: () => readonly string[] };

export async function playClient(script: LoadScript, n: number, place: Place): Promise<Played> {
  const client = await WireClient.connect(place.port);
  await openEntryPoint(client, script, n, place);
  const from = client.transcript.length;
  const responses = (): readonly string[] => responsesIn(client.transcript.slice(from));
  const hasStopped = script.steps.some((step) => 'stop' in step);
  if (!hasStopped) void readOn(client);
  for (const step of script.steps) await take(step, client, { n, place, responses });
  if (!hasStopped) await client.finished;
  return { client, responses };
}

/** Reads everything: without a reader the client would cause back-pressure. */
async function readOn(client: WireClient): Promise<void> {
  while ((await client.readSome()) !== undefined);
}

async function openEntryPoint(
  client: WireClient,
  script: LoadScript,
  n: number,
  place: Place,
): Promise<void> {
  const { entryPoint, host = 'api.test' } = script;
  if (entryPoint === 'plain') return;
  const name = fill(host, n, place);
  const authority = entryPoint === 'blind' ? fill('<BLIND>', n, place) : `${name}:${place.hostPort}`;
  const head = await client.openTunnel(authority);
  if (head.status !== 200) throw new Error(`CONNECT got ${head.text}`);
  if (entryPoint === 'inside') await client.startTls({ ca: place.caPem, name });
}

type Playing = {
  readonly n: number;
  readonly place: Place;
  readonly responses: () => readonly string[];
};

async function take(step: LoadStep, client: WireClient, { n, place, responses }: Playing): Promise<void> {
  if ('send' in step) {
    // The proxy may refuse the request before it has read all bytes.
    client.send(await bytesOf(step.send, n, place)).catch(() => undefined);
  } else if ('drip' in step) {
    const bytes = await bytesOf(step.drip, n, place);
    const drip = setInterval(() => client.send(bytes).catch(() => undefined), step.pauseMs);
    await client.finished;
    clearInterval(drip);
  } else if ('await' in step) await untilResponses(step.await, client, responses);
  else if ('arrived' in step) await place.arrived(n);
  else if ('sink' in step) place.blockSink();
  else if ('stop' in step) client.socket.pause();
  else if (step.leave === 'FIN') client.end();
  else client.reset();
}

/** Waits until `count` responses have arrived or the connection has ended. */
async function untilResponses(
  count: number,
  client: WireClient,
  responses: Playing['responses'],
): Promise<void> {
  const ending = client.finished.then(() => 'ended' as const);
  while (responses().length < count) {
    const { promise, resolve } = Promise.withResolvers<void>();
    client.socket.once('data', () => resolve());
    if ((await Promise.race([promise, ending])) === 'ended') return;
  }
}

function fill(text: string, n: number, { names, hostPort }: Place): string {
  return text
    .replaceAll('<N>', String(n))
    .replaceAll(/<HOST:([^>]+)>/g, (_, name: string) => `${name}:${hostPort}`)
    .replaceAll(/<([A-Z]+)>/g, (whole, name: string) => names[name] ?? whole);
}

async function bytesOf(bytes: Bytes, n: number, place: Place): Promise<Buffer> {
  const hello = (await helloFor('api.test')).toString('latin1');
  const filled = (text: string): Buffer => {
    const whole = text
      .replaceAll(/<HELLO (\d+)>/g, (_, length: string) => hello.slice(0, Number(length)))
      .replaceAll('<HELLO>', () => hello);
    return Buffer.from(fill(whole, n, place), 'latin1');
  };
  const pieces = bytes.map((part) => {
    if (typeof part === 'string') return filled(part);
    const piece = filled(part[0]);
    return Buffer.alloc(piece.length * part[1], piece);
  });
  return Buffer.concat(pieces);
}

/** Status and code of each response. No body of the stage's hosts contains a status line. */
function responsesIn(transcript: string): readonly string[] {
  return transcript
    .split(/(?=HTTP\/1\.1 [1-5]\d\d )/)
    .filter((text) => /^HTTP\/1\.1 /.test(text) && text.includes('\r\n\r\n'))
    .map((text) => {
      const [, code] = /^X-Sallyport-Error: (.*)\r$/m.exec(text) ?? [];
      return code === undefined ? text.slice(9, 12) : `${text.slice(9, 12)} ${code}`;
    });
}

let recorded: Promise<Buffer> | undefined;

/** A ClientHello as node:tls writes it. */
function helloFor(servername: string): Promise<Buffer> {
  recorded ??= new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const recorder = new Duplex({
      read: () => undefined,
      write(piece: Buffer, _, done) {
        pieces.push(piece);
        done();
        // node:tls writes a ClientHello in several writes of one event-loop turn.
        setImmediate(() => resolve(Buffer.concat(pieces)));
      },
    });
    connectTls({ socket: recorder, servername, ALPNProtocols: ['http/1.1'] }).on('error', () => undefined);
  });
  return recorded;
}
