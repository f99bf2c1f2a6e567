// Plays one row of the stage `h2` on a connection of its own and returns what was observed at the client, at the host and
// in the records. `violations` compares only that with the row.
import { SECRET, bearerRule, publicAuthority, tracesOf } from '../../invariants/credential-scene.ts';
import type { ErrorName } from '../../support/h2-frames.ts';
import type { H2Exchange, H2Request } from '../../support/h2-exchange.ts';
import { type H2Origin, createH2Origin } from '../../support/h2-origin.ts';
import { type H2Response as Read, H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { countTicks, ticks } from '../../proxy/h2/session-ticks.ts';
import { type StreamCount, piecesOf } from './h2-frames-of-steps.ts';
import { type FrameStep, type H2Row, type H2Step, get } from './h2-script.ts';

/** A record that is not written within this time counts as missing. */
const PATIENCE_MS = 3_000;
/** Paths that no row uses. */
const OWN = ['/bystander', '/alive'];

export type H2Scene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly origin: H2Origin;
  play(row: H2Row): Promise<H2Observation>;
};

export type H2Observation = {
  readonly streams: Readonly<Record<number, string>>;
  readonly response: Read | undefined;
  /** How often the sessions were looked at until the connection was closed. */
  readonly ticks: number;
  /** The GOAWAY codes that the client read. */
  readonly goaways: readonly (ErrorName | number)[];
  readonly isEnded: boolean;
  /** The response to the next request on the same connection, if the row leaves it open. */
  readonly alive: string | undefined;
  readonly bystander: string;
  readonly complete: readonly H2Request[];
  readonly incomplete: readonly H2Request[];
  readonly http1: number;
  readonly host: 'reused' | 'fresh' | undefined;
  readonly records: readonly string[];
  readonly missing: readonly string[];
  readonly failures: readonly unknown[];
  readonly traces: readonly string[];
};

export async function createH2Scene(): Promise<H2Scene> {
  let script: readonly H2Step[] | undefined;
  const respond = async (exchange: H2Exchange): Promise<void> => {
    const { method, path } = exchange.request;
    const steps = OWN.includes(path) ? undefined : script;
    if (steps === undefined) {
      if (!(await exchange.request.ended())) return;
      await exchange.response(200, [], method === 'HEAD' ? '' : `${method} ${path}`);
      return;
    }
    script = undefined;
    await attack(exchange, steps);
  };
  const tls = { authority: publicAuthority, names: ['api.test', 'other.test'] };
  const origin = await createH2Origin({ tls, respond });
  const proxy = await createTestSidecar({
    proxyConfig: { rules: [bearerRule('api.test')] },
    secrets: { TOKEN: SECRET },
    origins: publicAuthority,
    config: { timeouts: { drain_ms: 500 } },
  });
  const authority = `api.test:${origin.port}`;
  const open = (row?: H2Row): Promise<H2WireClient> => {
    const { greeting = {} } = row?.script ?? {};
    const trust = { ca: proxy.caPem, name: 'api.test' };
    const options = greeting === 'none' ? { hasPreface: false } : { settings: greeting };
    return H2WireClient.connectThrough(proxy.port, authority, trust, options);
  };
  const bystander = await open();
  return {
    proxy,
    origin,
    async play(row) {
      script = row.script.host;
      await using client = await open(row);
      return await playRow(row, { proxy, origin, client, bystander });
    },
    async [Symbol.asyncDispose]() {
      await bystander[Symbol.asyncDispose]();
      await origin.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** The host's side of a row. */
async function attack(exchange: H2Exchange, steps: readonly H2Step[]): Promise<void> {
  const { request, connection } = exchange;
  const count = { next: 2, last: request.id };
  for (const step of steps) {
    if ('wait' in step) await request.ended();
    else if ('leave' in step) connection[step.leave === 'fin' ? 'end' : 'destroy']();
    // A head of the host is on the stream of the request by default.
    else if (!(await sendAll(exchange, 'head' in step ? { stream: request.id, ...step } : step, count, same)))
      return;
  }
}

const same = (text: string): string => text.replaceAll('{SECRET}', SECRET);

type Sender = { send(...frames: readonly Buffer[]): Promise<boolean> };

/** False once the connection is closed. */
async function sendAll(
  to: Sender,
  step: FrameStep,
  count: StreamCount,
  fill: (text: string) => string,
): Promise<boolean> {
  for (const piece of piecesOf(step, count, fill)) if (!(await to.send(piece))) return false;
  return true;
}

type Peers = {
  readonly proxy: TestSidecar;
  readonly origin: H2Origin;
  readonly client: H2WireClient;
  readonly bystander: H2WireClient;
};

async function playRow({ script, expect }: H2Row, peers: Peers): Promise<H2Observation> {
  const { proxy, origin, client, bystander } = peers;
  const before = {
    streams: origin.streams.length,
    records: proxy.records().length,
    http1: origin.http1.requests.length,
    failures: origin.failures.length,
  };
  using ticksOfRow = countTicks();
  await converse(script.client ?? [get()], peers);
  const streams: Record<number, string> = {};
  let response: Read | undefined;
  for (const id of Object.keys(expect.streams).map(Number)) {
    const read = await within(client.response(client.peer.stream(id)).catch(() => undefined));
    if (id === 1) response = read;
    streams[id] = outcomeOf(read);
  }
  const hasLeft = script.client?.some((step) => 'leave' in step) ?? false;
  const isEnded = expect.ends === undefined || (await within(client.closed)) !== undefined;
  const ticksUntilEnd = ticksOfRow.count;
  // Streams that nghttp2 reset are counted at the next tick of the session.
  if (expect.records?.some((text) => text.includes('http2_layer'))) await ticks(1);
  const alive = expect.ends || hasLeft ? undefined : await ask(client, '/alive');
  const beside = await ask(bystander, '/bystander');
  const arrived = origin.streams.slice(before.streams).filter(({ path }) => !OWN.includes(path));
  const complete: H2Request[] = [];
  const incomplete: H2Request[] = [];
  for (const one of arrived) ((await one.ended()) ? complete : incomplete).push(one);
  const own = Array.from({ length: alive === undefined ? 1 : 2 }, () => 'injected');
  const missing = await missingRecords(proxy, before.records, [...expectedRecords(expect), ...own]);
  const next = origin.streams.slice(before.streams).find(({ path }) => path === '/alive');
  const first = arrived[0]?.connection;
  return {
    streams,
    response,
    ticks: ticksUntilEnd,
    goaways: client.peer.goaways.map(({ code }) => code),
    isEnded,
    alive,
    bystander: beside,
    complete,
    incomplete,
    http1: origin.http1.requests.length - before.http1,
    host: next && first !== undefined ? (next.connection === first ? 'reused' : 'fresh') : undefined,
    records: proxy.records().slice(before.records).map(summaryOf),
    missing,
    failures: origin.failures.slice(before.failures),
    traces: tracesOf(SECRET, [
      ...readBy(client),
      ...proxy
        .records()
        .slice(before.records)
        .map((one) => JSON.stringify(one)),
    ]),
  };
}

async function converse(steps: readonly H2Step[], { client, origin }: Peers): Promise<void> {
  const count = { next: 1, last: 1 };
  let arrivals = origin.streams.length;
  const fill = (text: string): string =>
    text
      .replaceAll('{authority}', client.authority)
      .replaceAll('{port}', String(origin.port))
      .replaceAll('{SECRET}', SECRET);
  for (const step of steps) {
    if ('leave' in step) client.wire[step.leave === 'fin' ? 'end' : 'reset']();
    else if (!('wait' in step)) {
      if (!(await sendAll(client, step, count, fill))) break;
    } else if (step.wait === 'arrival') await origin.stream(arrivals++);
    else if (step.wait === 'head') await client.head(client.peer.stream(count.last));
    else await client.response(client.peer.stream(count.last));
  }
  // The requests after a row use stream ids that it did not use.
  for (let id = -1; id < Math.max(count.next - 2, count.last); ) id = client.nextId();
}

function outcomeOf(read: Read | undefined): string {
  if (read === undefined) return 'lost';
  const code = refusalOf(read);
  const parts = [
    ...(read.status === 0 ? [] : [String(read.status)]),
    ...(code === undefined ? [] : [code]),
    // After a refusal the reset only means that the rest of the request is not wanted.
    ...(read.reset === undefined || code !== undefined ? [] : [`RST ${read.reset}`]),
  ];
  return parts.join(' ');
}

async function ask(client: H2WireClient, path: string): Promise<string> {
  try {
    const read = await within(client.request(client.fields(path)));
    return read === undefined ? 'silence' : `${read.status} ${read.text}`;
  } catch (error) {
    return error instanceof Error ? error.message : 'lost';
  }
}

/** All that the client could read, with HPACK and bodies decoded. */
function readBy({ wire, peer }: H2WireClient): readonly string[] {
  const streams = [...peer.streams.values()];
  return [
    wire.transcript,
    ...peer.goaways.map(({ debug }) => debug),
    ...streams.map(({ content }) => content.toString('latin1')),
    ...streams.flatMap(({ blocks }) => blocks.flatMap(({ fields }) => fields.map(({ value }) => value))),
  ];
}

/** The expected records: one for each stream, derived from its response, and those that the row adds. */
function expectedRecords({ streams, arrives, records = [] }: H2Row['expect']): readonly string[] {
  const isInjected = JSON.stringify(arrives).includes('authorization');
  const derived = Object.values(streams).flatMap((outcome) => {
    if (outcome === '200') return [isInjected ? 'injected' : 'forwarded'];
    const [, status = '', code = ''] = /^(\d{3}) ([a-z0-9_]+)$/.exec(outcome) ?? [];
    if (code === '') return [];
    return [`${status === '502' ? 'failed' : 'refused'} ${code}`];
  });
  return [...derived, ...records];
}

function summaryOf(record: LogRecord): string {
  return [record['outcome'], record['reason'], record['cause']]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** The expected records that are missing; the wait ends with the last one found. */
async function missingRecords(
  proxy: TestSidecar,
  from: number,
  wanted: readonly string[],
): Promise<readonly string[]> {
  const left = [...wanted];
  for (let index = from; left.length > 0; index += 1) {
    const record = await within(proxy.record(index));
    if (record === undefined) break;
    const text = summaryOf(record);
    const at = left.findIndex((one) => text.startsWith(one));
    if (at !== -1) left.splice(at, 1);
  }
  return left;
}

/** Undefined if it does not happen in time. */
async function within<T>(wanted: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, PATIENCE_MS, undefined);
  try {
    return await Promise.race([wanted, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Every difference between the observation and the row, as texts. */
export function violations({ expect }: H2Row, seen: H2Observation, port: number): readonly string[] {
  const found: string[] = [];
  for (const [id, outcome] of Object.entries(expect.streams)) {
    const got = seen.streams[Number(id)] ?? '';
    if (!outcome.split('|').includes(got)) found.push(`stream ${id}: ${got} instead of ${outcome}`);
  }
  const errorCodes = seen.goaways.filter((code) => code !== 'NO_ERROR');
  const allowed: readonly (ErrorName | number)[] = expect.ends ?? [];
  for (const code of errorCodes) if (!allowed.includes(code)) found.push(`GOAWAY ${code}`);
  if (seen.alive !== undefined && seen.alive !== '200 GET /alive') found.push(`after it: ${seen.alive}`);
  if (seen.bystander !== '200 GET /bystander') found.push(`the bystander: ${seen.bystander}`);
  if (!seen.isEnded) found.push('the connection did not end');
  if (seen.missing.length > 0)
    found.push(`no record of ${seen.missing.join(', ')} in ${seen.records.join(', ')}`);
  if (seen.http1 > 0) found.push('a request arrived over HTTP/1.1');
  if (expect.host !== undefined && expect.host !== seen.host) found.push(`the session was ${seen.host}`);
  if (seen.failures.length > 0) found.push(`the host could not read: ${String(seen.failures[0])}`);
  if (seen.incomplete.length > refilled(expect.mayBegin ?? 0, expect, seen))
    found.push(`${seen.incomplete.length} requests began in ${seen.ticks} ticks`);
  found.push(...seen.traces.map((form) => `the secret was disclosed:  ${form}`));
  return [...found, ...arrivalViolations(expect, seen, port), ...responseViolations(expect, seen)];
}

/** What is never allowed stays so. */
function refilled(limit: number, { perTick = 0 }: H2Row['expect'], { ticks: passed }: H2Observation): number {
  return limit === 0 ? 0 : limit + perTick * passed;
}

function arrivalViolations(expect: H2Row['expect'], seen: H2Observation, port: number): readonly string[] {
  const { arrives } = expect;
  const { complete } = seen;
  if (typeof arrives === 'number')
    return complete.length > refilled(arrives, expect, seen)
      ? [`${complete.length} requests arrived in ${seen.ticks} ticks`]
      : [];
  const want = JSON.stringify(arrives.map(({ fields, body }) => [fields, body]))
    .replaceAll('{authority}', `api.test:${port}`)
    .replaceAll('{port}', String(port))
    .replaceAll('{SECRET}', SECRET);
  const got = JSON.stringify(complete.map(({ headers, body }) => [headers, body.content.toString('latin1')]));
  const found = want === got ? [] : [`arrived: ${got} instead of ${want}`];
  if (complete.some(({ trailers }) => trailers !== undefined)) found.push('trailers arrived');
  const isIndexed = complete.some(
    ({ neverIndexed, headers }) =>
      headers.some(([name]) => name === 'authorization') && !neverIndexed.includes('authorization'),
  );
  if (isIndexed) found.push('the credential may be indexed');
  return found;
}

function responseViolations({ response }: H2Row['expect'], seen: H2Observation): readonly string[] {
  if (response === undefined) return [];
  const read = seen.response;
  const headers = read?.headers.filter(([name]) => name !== ':status');
  const want = JSON.stringify([
    response.fields,
    response.body,
    response.trailers ?? null,
    response.interim ?? [],
  ]);
  const interim = read?.interim.map(({ status }) => status);
  const got = JSON.stringify([headers, read?.text, read?.trailers ?? null, interim ?? []]);
  return want === got ? [] : [`response: ${got} instead of ${want}`];
}
