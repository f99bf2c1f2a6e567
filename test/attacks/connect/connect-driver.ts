// Plays one row of the stage `connect` and returns what was observed: at the client, at every origin, in the dial ledger, in
// the lookups and in the records. `violations` compares only that with the row.
import { tracesOf } from '../../invariants/credential-scene.ts';
import { inRecords, helloBody, message, serverName } from '../../tls/hello-bytes.ts';
import { WireClient, type WireHead } from '../../support/wire-client.ts';
import { connectPolicies } from './connect-policies.ts';
import { type ConnectScene, type ProxyPlace, SECRET } from './connect-scene.ts';
import type {
  Arrival,
  ConnectExpectation,
  ConnectRow,
  ConnectScript,
  ExpectedRecord,
  HelloPart,
  LeavePart,
  TlsPart,
} from './connect-script.ts';

export type Observation = {
  connect: string;
  responses: string[];
  alert: number | 'none' | undefined;
  certificateIssuer: string | undefined;
  arrived: readonly Arrival[];
  requestedNames: readonly string[];
  dialled: readonly string[];
  lookedUp: readonly string[];
  records: readonly ExpectedRecord[];
  /** Every byte that the client read, in plaintext and inside TLS. */
  received: string;
  /** The bytes after the last response on a connection that announced its close. */
  excess: string;
};

export async function play(scene: ConnectScene, { script, expect }: ConnectRow): Promise<Observation> {
  const place = scene.proxies[script.at ?? 'strict'];
  const applied = place.proxy.apply(connectPolicies[script.policy ?? 'base']);
  if (!applied.ok) throw new Error('a policy of the stage is invalid');
  const seen = createObservation();
  const before = markOf(scene, place);
  {
    await using client = await WireClient.connect(place.proxy.port);
    const dialsBefore = scene.ledger.attempts.length;
    await converse(client, fill(script, place), seen, scene.publicPem + place.proxy.caPem);
    if (script.then?.kind !== 'leave') client.end();
    await place.proxy.record(before.records + expect.records.length - 1);
    seen.dialled = scene.ledger.attempts.slice(dialsBefore);
  }
  return Object.assign(seen, since(scene, place, before));
}

function createObservation(): Observation {
  return {
    connect: 'none',
    responses: [],
    alert: undefined,
    certificateIssuer: undefined,
    arrived: [],
    requestedNames: [],
    dialled: [],
    lookedUp: [],
    records: [],
    received: '',
    excess: '',
  };
}

async function converse(
  client: WireClient,
  script: ConnectScript,
  seen: Observation,
  trusted: string,
): Promise<void> {
  const { then } = script;
  const early = then?.kind === 'hello' && then.isEarly ? [helloOf(then)] : [];
  const [head = '', ...more] = script.send;
  await client.send(Buffer.concat([Buffer.from(head, 'latin1'), ...early]));
  for (const bytes of more) await client.send(bytes);
  const first = await readResponse(client, seen);
  seen.connect = first ?? 'none';
  if (first === '200' && then?.kind === 'hello') await sayHello(client, then, seen);
  if (first === '200' && then?.kind === 'leave') await leave(client, then);
  if (first === '200' && then?.kind === 'clear') await askAll(client, then.requests, seen);
  seen.received += client.transcript;
  if (first !== '200' || then?.kind !== 'tls') return;
  const secure = await client.startTls(tlsOptions(then, trusted));
  seen.certificateIssuer = /Sallyport/.test(String(secure.getPeerCertificate().issuer.CN))
    ? 'proxy'
    : 'origin';
  await askAll(client, then.requests, seen);
  seen.received += client.transcript;
}

function tlsOptions({ name, serverName: asked }: TlsPart, ca: string): Parameters<WireClient['startTls']>[0] {
  return { ca, name, ...(asked === undefined ? {} : { serverName: asked }) };
}

function helloOf({ serverNames }: HelloPart): Buffer {
  const names = serverNames.map((name) => Buffer.from(name, 'latin1'));
  const extensions = names.length === 0 ? Buffer.alloc(0) : serverName(...names);
  return inRecords(message(helloBody({ extensions })));
}

async function leave(client: WireClient, { by, bytes }: LeavePart): Promise<void> {
  if (bytes !== '') await client.send(bytes);
  if (by === 'rst') client.reset();
  else client.end();
}

async function sayHello(client: WireClient, hello: HelloPart, seen: Observation): Promise<void> {
  if (!hello.isEarly) await client.send(helloOf(hello));
  seen.alert = await readAlert(client);
}

/** Exactly one fatal alert record. */
async function readAlert(client: WireClient): Promise<number | 'none'> {
  const text = await restOf(client);
  const [, code] = /^\x15\x03.\x00\x02\x02(.)$/s.exec(text) ?? [];
  if (code !== undefined) return code.charCodeAt(0);
  if (text === '') return 'none';
  throw new Error(`neither an alert nor a close:  ${JSON.stringify(text)}`);
}

async function askAll(client: WireClient, requests: readonly string[], seen: Observation): Promise<void> {
  for (const request of requests) {
    await client.send(request);
    const response = await readResponse(client, seen);
    if (response === undefined) {
      seen.alert = 'none';
      return;
    }
    seen.responses.push(response);
    if (response !== '200') return;
  }
}

/** Status and code; undefined if the connection closes instead. */
async function readResponse(client: WireClient, seen: Observation): Promise<string | undefined> {
  let head: WireHead;
  try {
    head = await client.readHead();
  } catch {
    return undefined;
  }
  const field = (name: string): string | undefined => head.headers.find(([one]) => one === name)?.[1];
  if (field('Content-Length') !== undefined) await client.readBody();
  if (field('Connection') === 'close') seen.excess += await restOf(client);
  const code = field('X-Sallyport-Error');
  return code === undefined ? String(head.status) : `${head.status} ${code}`;
}

async function restOf(client: WireClient): Promise<string> {
  try {
    return await client.readToEnd();
  } catch {
    // A reset instead of a FIN: it carried no byte either.
    return '';
  }
}

type Mark = {
  readonly records: number;
  readonly lookups: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly transcripts: Readonly<Record<string, readonly string[]>>;
};

function markOf({ origins }: ConnectScene, { proxy }: ProxyPlace): Mark {
  const entries = Object.entries(origins);
  return {
    records: proxy.records().length,
    lookups: proxy.lookups.length,
    requests: Object.fromEntries(entries.map(([at, { requests }]) => [at, requests.length])),
    transcripts: Object.fromEntries(entries.map(([at, { transcripts }]) => [at, transcripts])),
  };
}

function since(scene: ConnectScene, { proxy }: ProxyPlace, before: Mark): Partial<Observation> {
  const entries = Object.entries(scene.origins);
  const arrived = entries.flatMap(([at, { transcripts }]) =>
    transcripts
      .map((bytes, i) => ({ at, bytes: bytes.slice(before.transcripts[at]?.[i]?.length ?? 0) }))
      .filter(({ bytes }) => bytes !== ''),
  );
  const requestedNames = entries.flatMap(([at, { requests }]) =>
    requests.slice(before.requests[at]).map((request) => request.serverName ?? ''),
  );
  const records = proxy.records().slice(before.records);
  const lookedUp = proxy.lookups.slice(before.lookups);
  return {
    arrived,
    requestedNames,
    lookedUp,
    records: records as readonly object[] as readonly ExpectedRecord[],
  };
}

/** The row with its placeholders replaced by the ports of this scene. */
function fill<T>(value: T, { ports }: ProxyPlace): T {
  const filled = JSON.stringify(value).replace(/\{([A-Z]+)\}/g, (whole, name: string) => {
    if (name === 'SECRET') return SECRET;
    return ports[name] ?? whole;
  });
  return JSON.parse(filled) as T;
}

/** Every difference between the observation and the row, as texts. */
export function violations(scene: ConnectScene, row: ConnectRow, seen: Observation): readonly string[] {
  const expected = fill(row.expect, scene.proxies[row.script.at ?? 'strict']);
  const found = differences(expected, seen);
  found.push(...tracesOf(SECRET, [seen.received]).map((form) => `the client received the secret: ${form}`));
  if (seen.excess !== '') found.push(`after the last response:  ${JSON.stringify(seen.excess)}`);
  const unexpected = seen.lookedUp.filter((name, i, all) => {
    return !(expected.lookedUp ?? []).includes(name) || all.indexOf(name) !== i;
  });
  if (unexpected.length > 0) found.push(`looked up: ${unexpected.join(' ')}`);
  const isReused = expected.mayReuse && seen.dialled.length === 0;
  if (!isReused) found.push(...different('dialled', expected.dialled ?? [], seen.dialled));
  return found;
}

function differences(expected: ConnectExpectation, seen: Observation): string[] {
  const records = seen.records.map((record, i) => pick(record, expected.records[i] ?? record));
  return [
    ...different('CONNECT', expected.connect, seen.connect),
    ...different('responses', expected.responses ?? [], seen.responses),
    ...different('alert', expected.alert ?? null, seen.alert ?? null),
    ...different('certificate issuer', expected.certificateIssuer ?? null, seen.certificateIssuer ?? null),
    ...different('arrived', expected.arrived ?? [], seen.arrived),
    ...different('requested names', expected.requestedNames ?? [], seen.requestedNames),
    ...different('records', expected.records, records),
  ];
}

/** The fields of the record that the row expects. */
function pick(record: ExpectedRecord, fields: ExpectedRecord): object {
  const held = record as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.keys(fields).map((name) => [name, held[name]]));
}

function different(what: string, expected: unknown, seen: unknown): string[] {
  const [want, got] = [JSON.stringify(expected), JSON.stringify(seen)];
  return want === got ? [] : [`${what}: ${got} instead of ${want}`];
}
