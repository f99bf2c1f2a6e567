// Plays one row of the stage `tls` and returns what was observed: by the client, at the hosts and in the records.
import { Duplex } from 'node:stream';
import { X509Certificate } from 'node:crypto';
import { type TLSSocket, connect as connectTls } from 'node:tls';
import { SECRET, bearerRule, publicAuthority, tracesOf } from '../../invariants/credential-scene.ts';
import { type H2Origin, createH2Origin } from '../../support/h2-origin.ts';
import { H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { type BadHosts, badNames, createBadHosts } from './bad-hosts.ts';
import { cutRecords, helloBytes } from './hello-shapes.ts';
import type { ClientShape, HelloShape, HostShape, TlsRow } from './tls-script.ts';

const PATIENCE_MS = 3_000;

export type TlsScene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly origin: H2Origin;
  readonly hosts: BadHosts;
  play(row: TlsRow): Promise<TlsObservation>;
};

export type TlsObservation = {
  /** Each distinct outcome once. */
  readonly seen: readonly string[];
  readonly arrived: number;
  /** The number of request bytes at hosts that did not prove their name. */
  readonly bytesToUnproven: number;
  /** The number of client certificates that hosts received. */
  readonly clientCertificates: number;
  readonly certificates: number;
  readonly records: readonly string[];
  readonly isRecorded: boolean;
  readonly traces: readonly string[];
};

type Seen = { readonly text: string; readonly certificate?: string; readonly received: string };

export async function createTlsScene(): Promise<TlsScene> {
  const hosts = await createBadHosts();
  const respond = (): string => 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine';
  const origin = await createH2Origin({
    tls: { authority: publicAuthority, names: ['api.test'] },
    respond: async ({ response }) => void (await response(200, [], 'fine')),
    respondHttp1: ({ send }) => send(respond()),
  });
  const rules = [
    bearerRule('api.test'),
    ...badNames.map((name) => bearerRule(name)),
    bearerRule('*.mint.test'),
  ];
  const proxy = await createTestSidecar({
    proxyConfig: { rules },
    secrets: { TOKEN: SECRET },
    origins: { ...publicAuthority, certificatePem: publicAuthority.certificatePem + hosts.trustedPem },
    config: { timeouts: { drain_ms: 500 } },
  });
  const scene = { proxy, origin, hosts };
  return {
    ...scene,
    play: (row) => playRow(scene, row),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await origin.close();
      await hosts[Symbol.asyncDispose]();
    },
  };
}

type Parts = Pick<TlsScene, 'proxy' | 'origin' | 'hosts'>;

async function playRow(scene: Parts, { script, expect }: TlsRow): Promise<TlsObservation> {
  const { proxy, origin, hosts } = scene;
  const before = {
    records: proxy.records().length,
    requests: origin.streams.length + origin.http1.requests.length,
    bytesToUnproven: hosts.received(),
    clientCertificates: hosts.clientCertificates(),
  };
  const all: Seen[] = [];
  const times = 'times' in script ? (script.times ?? 1) : 1;
  for (let n = 0; n < times; n += 1) {
    if ('hello' in script) {
      const one = await sayHello(scene, numbered(script, n));
      all.push({ ...one, text: one.text.replace(`m${n}.`, 'm{n}.') });
    } else if ('client' in script) all.push(await meet(scene, numbered(script, n)));
    else all.push(await ask(scene, script));
  }
  const { record = '' } = expect;
  const isRecorded = record === '' || (await hasRecord(proxy, before.records, record));
  const records = proxy.records().slice(before.records);
  return {
    seen: [...new Set(all.map(({ text }) => text))],
    arrived: origin.streams.length + origin.http1.requests.length - before.requests,
    bytesToUnproven: hosts.received() - before.bytesToUnproven,
    clientCertificates: hosts.clientCertificates() - before.clientCertificates,
    certificates: new Set(all.flatMap(({ certificate }) => certificate ?? [])).size,
    records: records.map(said),
    isRecorded,
    traces: tracesOf(SECRET, [...all.map(({ received }) => received), JSON.stringify(records)]),
  };
}

export function numbered<T>(shape: T, n: number): T {
  return JSON.parse(JSON.stringify(shape).replaceAll('{n}', String(n))) as T;
}

/** The proxy port, and the default port of the CONNECT. */
type Entry = { readonly proxy: { readonly port: number }; readonly origin: { readonly port: number } };

function placeOf({ origin }: Entry, authority = 'api.test'): string {
  return authority.includes(':') ? authority : `${authority}:${origin.port}`;
}

/** The outcome of a hand-made ClientHello: reads until the connection closes or a certificate has arrived. */
export async function sayHello(scene: Entry, shape: HelloShape): Promise<Seen> {
  await using client = await WireClient.connect(scene.proxy.port);
  const head = await client.openTunnel(placeOf(scene, shape.authority));
  if (head.status !== 200) return { text: `CONNECT ${head.status}`, received: client.transcript };
  const bytes = helloBytes(shape);
  const { writes = bytes.length } = shape;
  for (let at = 0; at < bytes.length; at += writes)
    await client.send(bytes.subarray(at, at + writes)).catch(() => undefined);
  let got: Buffer = Buffer.alloc(0);
  for (;;) {
    const piece = await within(client.readSome().catch(() => undefined));
    if (piece === 'late') return { text: 'silence', received: '' };
    if (piece !== undefined) got = Buffer.concat([got, piece]);
    const read = readFlight(got);
    if (read !== undefined) return { ...read, received: got.toString('latin1') };
    if (piece === undefined) return { text: got.length === 0 ? 'end' : 'bytes', received: '' };
  }
}

/** The first alert or certificate in the plaintext records of a server. */
function readFlight(bytes: Buffer): Omit<Seen, 'received'> | undefined {
  const handshake: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt16BE(at + 3);
    if (end > bytes.length) return undefined;
    if (bytes[at] === 21) return { text: `alert ${bytes[at + 6]}` };
    if (bytes[at] !== 22) return { text: 'bytes' };
    handshake.push(bytes.subarray(at + 5, end));
    at = end;
  }
  const messages = Buffer.concat(handshake);
  for (let at = 0; at + 4 <= messages.length; ) {
    const end = at + 4 + messages.readUIntBE(at + 1, 3);
    if (end > messages.length) return undefined;
    if (messages[at] === 11) {
      const size = messages.readUIntBE(at + 7, 3);
      const leaf = new X509Certificate(messages.subarray(at + 10, at + 10 + size));
      return {
        text: `certificate of ${leaf.subjectAltName?.replace(/^DNS:/, '')}`,
        certificate: leaf.fingerprint256,
      };
    }
    at = end;
  }
  return undefined;
}

/** A library client whose first bytes are split differently, with one request. */
async function meet(scene: Parts, shape: ClientShape): Promise<Seen> {
  await using client = await WireClient.connect(scene.proxy.port);
  const authority = placeOf(scene, shape.authority);
  const head = await client.openTunnel(authority);
  if (head.status !== 200) return { text: `CONNECT ${head.status}`, received: client.transcript };
  const { alpn = ['http/1.1'], name = authority.replace(/:\d+$/, ''), ...options } = shape.client;
  const long = Array.from({ length: shape.fill ?? 0 }, (_, n) => `x${n}`.padEnd(250, '-'));
  const secure = connectTls({
    socket: cutting(client, shape),
    servername: name,
    ca: scene.proxy.caPem,
    ALPNProtocols: [...alpn, ...long],
    ...options,
  });
  let received = '';
  secure.on('data', (piece: Buffer) => {
    received += piece.toString('latin1');
  });
  const ended = new Promise<string>((resolve) => {
    secure.once('error', (error: NodeJS.ErrnoException) => resolve(`error ${error.code}`));
    secure.once('end', () => resolve('end'));
    secure.once('close', () => resolve('end'));
  });
  const ready = new Promise<undefined>((resolve) => secure.once('secureConnect', () => resolve(undefined)));
  const failed = await Promise.race([ready, ended]);
  try {
    if (failed !== undefined) return { text: failed, received };
    const certificate = secure.getPeerX509Certificate()?.fingerprint256;
    const text = await converse(secure, shape, authority, ended);
    return {
      text: `${secure.alpnProtocol || 'none'} ${text}`,
      received,
      ...(certificate ? { certificate } : {}),
    };
  } finally {
    secure.destroy();
  }
}

async function converse(
  secure: TLSSocket,
  { then }: ClientShape,
  authority: string,
  ended: Promise<string>,
): Promise<string> {
  if (then === 'nothing') return 'done';
  const request = `GET / HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`;
  let text = '';
  secure.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
  });
  if (then === 'renegotiation') secure.renegotiate({}, () => undefined);
  if (then === 'tls in tls') secure.write(helloBytes({ hello: { names: ['api.test'] } }));
  else if (then === 'http2 preface') secure.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  else for (const piece of then === 'tiny records' ? request : [request]) secure.write(piece);
  const how = await within(ended);
  const [, status, code] =
    /^HTTP\/1\.1 (\d{3}).*?(?:\r\nX-Sallyport-Error: ([a-z0-9_]+))?\r\n.*\r\n\r\n/s.exec(text) ?? [];
  const error = /X-Sallyport-Error: ([a-z0-9_]+)/.exec(text)?.[1] ?? code;
  if (status === undefined) return how;
  return error === undefined ? status : `${status} ${error}`;
}

/** The transport below TLS: splits the first write of TLS differently. */
function cutting(client: WireClient, { records, writes }: ClientShape): Duplex {
  let isFirst = true;
  const { socket } = client;
  const duplex = new Duplex({
    read() {},
    write(bytes: Buffer, _, done) {
      const cut = isFirst && records !== undefined ? cutRecords(bytes, records) : bytes;
      const size = isFirst && writes !== undefined ? writes : cut.length;
      isFirst = false;
      const send = async (): Promise<void> => {
        for (let at = 0; at < cut.length; at += size) await client.send(cut.subarray(at, at + size));
      };
      send().then(
        () => done(),
        () => done(),
      );
    },
    final(done) {
      socket.end();
      done();
    },
  });
  const pump = async (): Promise<void> => {
    for (let piece = await client.readSome(); piece; piece = await client.readSome()) duplex.push(piece);
    duplex.push(null);
  };
  pump().catch(() => duplex.push(null));
  return duplex;
}

/** A request to an untrusted host. */
async function ask({ proxy, hosts }: Parts, { host, over }: HostShape): Promise<Seen> {
  const authority = `${host}:${hosts.portOf(host)}`;
  const trust = { ca: proxy.caPem, name: host, alpn: [over] };
  await using client = await WireClient.connectThrough(proxy.port, authority, trust);
  if (over === 'h2') {
    const h2 = await H2WireClient.over(client, authority);
    const response = await within(h2.request(h2.fields('/')));
    if (response === 'late') return { text: 'h2 silence', received: client.transcript };
    return { text: `h2 ${response.status} ${refusalOf(response)}`, received: client.transcript };
  }
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const { status, headers } = await client.readHead();
  const code = headers.find(([name]) => name === 'X-Sallyport-Error')?.[1];
  return { text: ['http/1.1', status, code].filter(Boolean).join(' '), received: client.transcript };
}

function said(record: LogRecord): string {
  return [record['outcome'], record['reason'], record['cause']]
    .filter((part) => part !== undefined)
    .join(' ');
}

async function hasRecord(proxy: TestSidecar, from: number, wanted: string): Promise<boolean> {
  for (let index = from; ; index += 1) {
    const record = await within(proxy.record(index));
    if (record === 'late') return false;
    if (said(record).startsWith(wanted)) return true;
  }
}

/** `late` if it does not happen in time. */
async function within<T>(wanted: Promise<T>): Promise<T | 'late'> {
  const { promise, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(resolve, PATIENCE_MS, 'late');
  try {
    return await Promise.race([wanted, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Every difference between the observation and the row, as texts. */
export function violations({ expect }: TlsRow, seen: TlsObservation): readonly string[] {
  const found = seen.traces.map((form) => `the secret was disclosed: ${form}`);
  const isExpected = (text: string): boolean => expect.seen.split('|').includes(text);
  found.push(
    ...seen.seen.filter((text) => !isExpected(text)).map((text) => `${text} instead of ${expect.seen}`),
  );
  if (seen.arrived !== expect.arrives) found.push(`${seen.arrived} requests arrived`);
  if (seen.clientCertificates > 0) found.push('the proxy sent a client certificate');
  if (seen.bytesToUnproven > 0 && !expect.isProven)
    found.push(`${seen.bytesToUnproven} bytes reached an unproven host`);
  if (expect.certificates !== undefined && seen.certificates !== expect.certificates)
    found.push(`${seen.certificates} certificates`);
  if (!seen.isRecorded) found.push(`no record of ${expect.record} in ${seen.records.join(', ')}`);
  return found;
}
