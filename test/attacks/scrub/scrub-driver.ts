// Plays a row of stage `scrub` through one sidecar whose rule has `scrub: body`, with one origin for each HTTP version.
// Returns everything that was observed; `violations` compares it.
import { SECRET, publicAuthority, tracesOf } from '../../invariants/credential-scene.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { type H2Origin, createH2Origin } from '../../support/h2-origin.ts';
import { H2WireClient } from '../../support/h2-wire-client.ts';
import { type Exchange, type RecordingOrigin, createOrigin } from '../../support/recording-origin.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { Field, ScrubRow, ScrubScript } from './scrub-script.ts';

export type ScrubScene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  play(script: ScrubScript): Promise<ScrubObservation>;
};

export type ScrubObservation = {
  readonly status: number;
  readonly headers: readonly Field[];
  readonly body: string;
  readonly trailers: readonly Field[] | undefined;
  readonly isCut: boolean;
  /** The fields of every request that reached either origin. */
  readonly arrived: readonly (readonly Field[])[];
  readonly record: LogRecord;
  readonly traces: readonly string[];
};

type Read = Pick<ScrubObservation, 'status' | 'headers' | 'body' | 'trailers' | 'isCut'>;
type Peers = { readonly proxy: TestSidecar; readonly h1: RecordingOrigin; readonly h2: H2Origin };

const rule = {
  name: 'api',
  match_hosts: ['api.test'],
  headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
  scrub: 'body',
};

export async function createScrubScene(): Promise<ScrubScene> {
  let script: ScrubScript | undefined;
  const tls = { authority: publicAuthority, names: ['api.test'] };
  const h1 = await createOrigin({ tls, respond: async (exchange) => script && respondH1(exchange, script) });
  const h2 = await createH2Origin({
    tls,
    respond: async (exchange) => script && respondH2(exchange, script),
  });
  const proxy = await createTestSidecar({
    secrets: { TOKEN: SECRET },
    origins: publicAuthority,
    proxyConfig: { rules: [rule] },
    config: { timeouts: { drain_ms: 500 } },
  });
  return {
    proxy,
    play(played) {
      script = played;
      return playScript(played, { proxy, h1, h2 });
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await h1.close();
      await h2.close();
    },
  };
}

async function playScript(script: ScrubScript, peers: Peers): Promise<ScrubObservation> {
  const { proxy, h1, h2 } = peers;
  const before = { records: proxy.records().length, h1: h1.requests.length, h2: h2.streams.length };
  const read = await (script.version === 'h1' ? askH1(script, peers) : askH2(script, peers));
  const record = await proxy.record(before.records);
  const arrived = [...h1.requests.slice(before.h1), ...h2.streams.slice(before.h2)];
  const seen = [read.body, JSON.stringify([read.headers, read.trailers ?? []]), JSON.stringify(record)];
  return { ...read, arrived: arrived.map(({ headers }) => headers), record, traces: tracesOf(SECRET, seen) };
}

async function askH1(
  { method = 'GET', asks = [], isCut = false }: ScrubScript,
  { proxy, h1 }: Peers,
): Promise<Read> {
  const authority = `api.test:${h1.port}`;
  const trust = { ca: proxy.caPem, name: 'api.test' };
  await using client = await WireClient.connectThrough(proxy.port, authority, trust);
  const lines = asks.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  await client.send(`${method} / HTTP/1.1\r\nHost: ${authority}\r\n${lines}\r\n`);
  const { status, headers } = await client.readHead();
  const read = { status, headers, trailers: undefined };
  if (isCut) return { ...read, body: await client.readToEnd(), isCut: true };
  const { content } = await client.readBody();
  return { ...read, body: content.toString('latin1'), isCut: false };
}

async function askH2({ method = 'GET', asks = [] }: ScrubScript, { proxy, h2 }: Peers): Promise<Read> {
  const authority = `api.test:${h2.port}`;
  const trust = { ca: proxy.caPem, name: 'api.test', alpn: ['h2'] };
  await using wire = await WireClient.connectThrough(proxy.port, authority, trust);
  const client = await H2WireClient.over(wire, authority);
  const fields = asks.map(([name, value]) => [name.toLowerCase(), value] as const);
  const response = await client.request(client.fields('/', fields, { ':method': method }));
  const { status, headers, trailers, reset } = response;
  return { status, headers, trailers, body: response.body.toString('latin1'), isCut: reset !== undefined };
}

async function respondH1({ send, end, readBody }: Exchange, script: ScrubScript): Promise<void> {
  const { status = 200, fields = [], framing = 'chunks', pieces, isCut, trailers = [] } = script;
  await readBody();
  const length = pieces.join('').length + (isCut ? 1 : 0);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  if (framing === 'length') lines.push(`Content-Length: ${length}\r\n`);
  if (framing === 'chunks') lines.push('Transfer-Encoding: chunked\r\n');
  await send(`HTTP/1.1 ${status} Scripted\r\n${lines.join('')}\r\n`);
  for (const piece of pieces) {
    const bytes = framing === 'chunks' ? `${piece.length.toString(16)}\r\n${piece}\r\n` : piece;
    await send(Buffer.from(bytes, 'latin1'));
  }
  if (framing === 'chunks' && pieces.length > 0)
    await send(`0\r\n${trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  if (framing === 'close' || isCut) end();
}

async function respondH2(
  { request, head, data, trailers: sendTrailers, reset }: H2Exchange,
  script: ScrubScript,
): Promise<void> {
  const { status = 200, fields = [], pieces, isCut, trailers } = script;
  await request.ended();
  const lower = fields.map(([name, value]) => [name.toLowerCase(), value] as const);
  await head(status, lower, { isEnd: pieces.length === 0 });
  for (const [i, piece] of pieces.entries())
    await data(Buffer.from(piece, 'latin1'), { isEnd: i === pieces.length - 1 && !isCut && !trailers });
  if (isCut) await reset('INTERNAL_ERROR');
  else if (trailers) await sendTrailers(trailers);
}

/** Request fields that make a host send a part of its response, or another coding of it. */
const asking: ReadonlySet<string> = new Set([
  ...['range', 'if-range', 'if_range', 'accept-encoding', 'accept_encoding', 'a-im'],
  ...['grpc-accept-encoding', 'connect-accept-encoding'],
]);

/** Every difference between the observation and the row. */
export function violations({ script, expect }: ScrubRow, seen: ScrubObservation): string[] {
  const { record } = seen;
  const { refused, places, status = refused ? 502 : (script.status ?? 200) } = expect;
  const found: string[] = [];
  const check = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should))
      found.push(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  };
  const code = seen.headers.find(([name]) => name.toLowerCase() === 'x-sallyport-error')?.[1];
  const outcome = refused || script.isCut ? 'failed' : 'injected';
  check('status', seen.status, status);
  check('code', code, refused && 'scrub_impossible');
  if (!refused) check('body', seen.body, expect.body ?? '');
  check('cut', seen.isCut, script.isCut ?? false);
  check('trailers', seen.trailers, expect.trailers);
  check('outcome', record['outcome'], outcome);
  check('cause', record['cause'], refused ?? record['cause']);
  check('scrubbed', record['scrubbed'], places);
  check('requests', seen.arrived.length, 1);
  check(
    'asked',
    seen.arrived.flat().filter(([name]) => asking.has(name.toLowerCase())),
    [],
  );
  check(
    'credentials',
    seen.arrived.flat().filter(([name]) => name.toLowerCase() === 'authorization').length,
    1,
  );
  if (!expect.isLeakDocumented) check('traces', seen.traces, []);
  return found;
}
