// One client of a storm: sends one write after another over one connection and records each in the ledger. No other
// client writes to its resources.
import { randomUUID } from 'node:crypto';
import type { Random } from '../../http1/mutation.ts';
import {
  type Responded,
  type Ask,
  openStormConnection,
  type Reply,
  type StormConnection,
} from './storm-connection.ts';
import {
  type KeyStory,
  type Ledger,
  type ListenerStory,
  noteLatency,
  type RecordStory,
} from './storm-ledger.ts';

/** A process that may be restarted, and then listens on another port. */
export type Target = {
  /** Resolves with its port once it listens. */
  port(): Promise<number>;
};

export type StormAccess = {
  readonly key: string;
  /** Of the sandbox of this client. */
  readonly sandbox: string;
  readonly sandboxToken: string;
};

export type StormScope = {
  readonly ledger: Ledger;
  readonly processes: readonly Target[];
  readonly random: Random;
  /** Called for every response, with the index of the process that sent it. */
  onResponse(index: number): void;
};

const LISTENERS = '/v2/listeners';
const KEYS = '/api/v1/api-key';
const MAX_BATCH = 40;
/** Percentage of writes before which a client changes to the next process. */
const MOVES = 5;

type Client = StormScope & {
  readonly name: string;
  readonly access: StormAccess;
  readonly connection: StormConnection;
  readonly live: ListenerStory[];
  readonly keys: { readonly story: KeyStory; readonly id: string }[];
  readonly records: RecordStory;
  /** The index of its process. */
  at: number;
  created: number;
};

/** Writes until `signal` aborts; resolves after its last response. */
export async function runStormClient(
  scope: StormScope,
  options: {
    readonly name: string;
    readonly at: number;
    readonly access: StormAccess;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  using connection = openStormConnection();
  const { name, at, access, signal } = options;
  const records = { source: randomUUID(), sandbox: access.sandbox, last: 0, added: 0 };
  scope.ledger.records.push(records);
  const client: Client = { ...scope, name, access, connection, live: [], keys: [], records, at, created: 0 };
  while (!signal.aborted) await act(client);
}

function act(client: Client): Promise<void> {
  const { random, live, keys } = client;
  if (random(100) < MOVES) client.at = (client.at + 1) % client.processes.length;
  const dice = random(100);
  const listener = live[random(Math.max(1, live.length))];
  if (dice < 30 || listener === undefined) return create(client);
  if (dice < 58) return change(client, listener);
  if (dice < 68) return remove(client, listener);
  if (dice < 76) return createKey(client);
  if (dice < 81 && keys.length > 0) return deleteKey(client);
  if (dice < 92) return sendRecords(client);
  if (dice < 94) return createAgain(client, listener);
  return dice < 97 ? changeNothing(client) : createWrongly(client);
}

/** Waits for the process of the client; every unexpected response is an error. */
async function send(client: Client, what: string, wanted: readonly number[], ask: Ask): Promise<Reply> {
  const { ledger, connection, processes, onResponse } = client;
  const port = await processes[client.at]?.port();
  const reply = await connection.ask(port ?? 0, ask).catch((error: unknown): Reply => {
    ledger.errors.push(`${what}: ${String(error)}`);
    return { kind: 'lost' };
  });
  if (reply.kind === 'lost') ledger.lost.responses += 1;
  if (reply.kind !== 'responded') return reply;
  onResponse(client.at);
  noteLatency(ledger, what, reply.ms);
  if (wanted.includes(reply.status)) return reply;
  ledger.errors.push(`${what} got ${reply.status} ${JSON.stringify(reply.body)}`);
  return { kind: 'lost' };
}

function listenerOf(computeId: string, version: string): unknown {
  return {
    compute_type: 'k8s',
    compute_id: computeId,
    compute_config: { k8s_namespaces: ['storm'] },
    version,
  };
}

function nextName(client: Client): string {
  client.created += 1;
  return `${client.name}-${client.created}`;
}

async function create(client: Client): Promise<void> {
  const computeId = nextName(client);
  const story: ListenerStory = {
    computeId,
    firstVersion: `${computeId}-first`,
    id: undefined,
    isKnownStored: false,
    versions: [],
    lostVersion: undefined,
    deletion: 'none',
  };
  const ask: Ask = {
    method: 'POST',
    path: LISTENERS,
    key: client.access.key,
    body: listenerOf(computeId, story.firstVersion),
  };
  const reply = await send(client, 'create_listener', [201], ask);
  if (reply.kind === 'unsent') return void client.ledger.unwritten.push(computeId);
  client.ledger.listeners.push(story);
  if (reply.kind === 'responded') settle(client, story, reply);
  else if (client.random(2) === 0) await createOnceMore(client, story, ask);
}

function settle({ live }: Client, story: ListenerStory, { body }: Responded): void {
  story.id = idIn(body);
  live.push(story);
}

/** As a client does after losing the response. */
async function createOnceMore(client: Client, story: ListenerStory, ask: Ask): Promise<void> {
  client.ledger.lost.resent += 1;
  const reply = await send(client, 'create_listener', [201, 409], ask);
  const rejection = { operation: 'create_listener', id: undefined } as const;
  if (reply.kind === 'lost') client.ledger.rejections.push({ ...rejection, hasResponded: false });
  if (reply.kind !== 'responded') return;
  if (reply.status === 201) return settle(client, story, reply);
  story.isKnownStored = true;
  client.ledger.rejections.push({ ...rejection, hasResponded: true });
}

async function change(client: Client, story: ListenerStory): Promise<void> {
  const version = nextName(client);
  const reply = await send(client, 'update_listener', [200], {
    method: 'PATCH',
    path: `${LISTENERS}/${story.id}`,
    key: client.access.key,
    body: { version },
  });
  if (reply.kind === 'responded') story.versions.push(version);
  else if (reply.kind === 'lost') story.lostVersion = forget(client, story, version);
}

async function remove(client: Client, story: ListenerStory): Promise<void> {
  const ask: Ask = { method: 'DELETE', path: `${LISTENERS}/${story.id}`, key: client.access.key };
  const reply = await send(client, 'delete_listener', [204], ask);
  if (reply.kind === 'unsent') return;
  story.deletion = forget(client, story, reply.kind === 'responded' ? 'done' : 'lost');
}

/** The client writes no more to this listener. */
function forget<T>({ live }: Client, story: ListenerStory, value: T): T {
  live.splice(live.indexOf(story), 1);
  return value;
}

async function createKey(client: Client): Promise<void> {
  const story: KeyStory = { description: nextName(client), id: undefined, deletion: 'none' };
  const { key } = client.access;
  const body = { description: story.description };
  const reply = await send(client, 'create_api_key', [200, 201], { method: 'POST', path: KEYS, key, body });
  if (reply.kind === 'unsent') return;
  client.ledger.keys.push(story);
  if (reply.kind !== 'responded') return;
  story.id = idIn(reply.body);
  client.keys.push({ story, id: story.id });
}

async function deleteKey(client: Client): Promise<void> {
  const { keys, access } = client;
  const [chosen] = keys.splice(client.random(keys.length), 1);
  if (chosen === undefined) return;
  const ask: Ask = { method: 'DELETE', path: `${KEYS}/${chosen.id}`, key: access.key };
  const reply = await send(client, 'delete_api_key', [200, 204], ask);
  if (reply.kind === 'unsent') keys.push(chosen);
  else chosen.story.deletion = reply.kind === 'responded' ? 'done' : 'lost';
}

/** Sends the same batch until it is acknowledged: the platform ignores records that it has. */
async function sendRecords(client: Client): Promise<void> {
  const { records, random, access, ledger } = client;
  const count = 1 + random(MAX_BATCH);
  const batch = Array.from({ length: count }, (_, i) => recordOf(records.sandbox, records.last + 1 + i));
  const body = { source: records.source, records: batch };
  const ask: Ask = { method: 'POST', path: '/v1/sandbox-records', key: access.sandboxToken, body };
  let reply = await send(client, 'records', [200, 429], ask);
  let isFirst = true;
  while (reply.kind !== 'responded' || reply.status === 429) {
    isFirst &&= reply.kind !== 'lost';
    if (reply.kind === 'lost') ledger.lost.resent += 1;
    client.at = random(client.processes.length);
    reply = await send(client, 'records', [200, 429], ask);
  }
  const { added } = reply.body as { readonly added: number };
  if (added !== count && (isFirst || added !== 0))
    ledger.errors.push(`${added} of a batch of ${count} were new, sent ${isFirst ? 'once' : 'again'}`);
  records.last += count;
  records.added += added;
}

function recordOf(sandbox: string, number: number): unknown {
  return {
    number,
    time: new Date().toISOString(),
    sandbox,
    revision: 1,
    method: 'GET',
    scheme: 'https',
    authority: 'api.test:443',
    path: `/storm/${number}`,
    outcome: 'forwarded',
    status: 200,
    bytes_up: 0,
    bytes_down: number,
    duration_ms: 1.5,
  };
}

async function createAgain(client: Client, { computeId }: ListenerStory): Promise<void> {
  const { key } = client.access;
  const body = listenerOf(computeId, 'again');
  const reply = await send(client, 'rejected', [409], { method: 'POST', path: LISTENERS, key, body });
  noteRejection(client, reply, 'create_listener');
}

async function changeNothing(client: Client): Promise<void> {
  const id = randomUUID();
  const { key } = client.access;
  const path = `${LISTENERS}/${id}`;
  const reply = await send(client, 'rejected', [404], {
    method: 'PATCH',
    path,
    key,
    body: { version: 'none' },
  });
  noteRejection(client, reply, 'update_listener', id);
}

async function createWrongly(client: Client): Promise<void> {
  const computeId = nextName(client);
  const { key } = client.access;
  const body = { compute_type: 'none', compute_id: computeId, compute_config: {} };
  const reply = await send(client, 'rejected', [422], { method: 'POST', path: LISTENERS, key, body });
  client.ledger.unwritten.push(computeId);
  noteRejection(client, reply, 'create_listener');
}

function noteRejection(
  { ledger }: Client,
  reply: Reply,
  operation: 'create_listener' | 'update_listener',
  id?: string,
): void {
  if (reply.kind !== 'unsent')
    ledger.rejections.push({ operation, id, hasResponded: reply.kind === 'responded' });
}

function idIn(body: unknown): string {
  return (body as { readonly id: string }).id;
}
