// What the authentication returned and a request sent for the runs of a user is nowhere in clear: neither in a table, nor in the log,
// nor in what the system shows of a process; while the run waits in a node, while its thread waits for somebody, and afterwards.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../../../src/platform/store/sql.ts';
import { startTenants, type Tenants } from './tenants-scene.ts';

const random = (): string => randomBytes(16).toString('hex');
/** The token that the handler returns with the user, and a header field that runs get. */
const [token, header, known] = [random(), random(), random()];
const user = `ada.${token}`;

type Called = { readonly said: Record<string, Record<string, unknown>>; readonly response: ServerResponse };

let tenants: Tenants;
let waiting = Promise.withResolvers<Called>();
const origin = createServer(async (request, response) => {
  waiting.resolve({ said: JSON.parse(await text(request)), response });
});

beforeAll(async () => {
  tenants = await startTenants();
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
}, 60_000);
afterAll(async () => {
  origin.closeAllConnections();
  origin.close();
  await tenants?.[Symbol.asyncDispose]();
});

/** As a text may be written: as it is, in hexadecimal, in Base64 at each of its three places. */
function formsOf(secret: string): readonly string[] {
  const base64 = [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(' '.repeat(shift) + secret).toString('base64');
    // Neighbours share the first and the last characters.
    return encoded.slice(4, -4);
  });
  const wide = Buffer.from(secret, 'utf16le').toString('hex');
  const ofBase64 = base64.map((encoded) => Buffer.from(encoded).toString('hex'));
  return [secret, Buffer.from(secret).toString('hex'), wide, ...base64, ...ofBase64];
}

/** Every row of every table; bytes as hexadecimal text. */
async function dump(): Promise<ReadonlyMap<string, string>> {
  const { db } = tenants.database.owner;
  const { rows: tables } = await sql<{ name: string }>`
    select format('%I.%I', table_schema, table_name) as name from information_schema.tables
    where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`.execute(db);
  const texts = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await sql<{ text: string }>`select t::text as text from ${sql.raw(name)} t`.execute(db);
    texts.set(name, rows.map((row) => row.text).join('\n'));
  }
  return texts;
}

/** The server and its workers. */
function processes(): readonly string[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]));
  const isOurs = (pid: string | undefined): boolean =>
    pid === String(tenants.server.process.pid) ||
    (pid !== undefined && pid !== '0' && isOurs(parents.get(pid)));
  return all.filter(isOurs);
}

function parentOf(pid: string): string | undefined {
  const status = read(`/proc/${pid}/status`);
  return /^PPid:\s+(\d+)$/m.exec(status)?.[1];
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** Where a secret is found. */
async function placesOf(secret: string): Promise<readonly string[]> {
  const { process } = tenants.server;
  const places = new Map(await dump());
  places.set('log', process.stdout + process.stderr);
  for (const pid of processes())
    for (const name of ['environ', 'cmdline', 'comm', 'status', 'stack', 'wchan'])
      places.set(`/proc/${pid}/${name}`, read(`/proc/${pid}/${name}`));
  const forms = formsOf(secret).map((form) => form.toLowerCase());
  return [...places]
    .filter(([, content]) => forms.some((form) => content.toLowerCase().includes(form)))
    .map(([place]) => place);
}

const MODES = ['values', 'updates', 'messages', 'messages-tuple', 'custom', 'events', 'debug'];

const streamed = async (thread: string, body: object): Promise<string> => {
  const stream_mode = [...MODES, 'tasks', 'checkpoints'];
  const response = await tenants.ask(user, 'POST', `/threads/${thread}/runs/stream`, {
    body: { assistant_id: 'agent', stream_mode, stream_resumable: true, stream_subgraphs: true, ...body },
    headers: { 'x-secret': header },
  });
  expect(response.status).toBe(200);
  return response.text;
};

it('are seen by the graph, and stored and shown nowhere', { timeout: 60_000 }, async () => {
  const { body: thread } = await tenants.ask(user, 'POST', '/threads', { body: {} });
  const call = `http://127.0.0.1:${(origin.address() as AddressInfo).port}/`;
  const run = streamed(thread.thread_id, { input: { does: { call, known } } });
  const { said, response } = await waiting.promise;
  expect(said['one']).toMatchObject({ identity: 'ada', token, nested: { tokens: [token] } });
  expect(said['other']).toEqual(said['one']);
  expect(said['header']).toBe(header);
  // The search finds what is stored.
  expect(await placesOf(known)).toEqual(
    expect.arrayContaining([
      'public.agent_runs',
      'public.agent_run_events',
      'public.agent_checkpoint_values',
    ]),
  );
  const users = await tenants.database.owner.db.selectFrom('agent_run_users').select('run_id').execute();
  expect(users).toHaveLength(1);
  for (const secret of [token, header]) expect(await placesOf(secret)).toEqual([]);

  response.end();
  const events = await run;
  expect(events).toContain('"seen":"called"');
  waiting = Promise.withResolvers();
  const asked = await streamed(thread.thread_id, { input: { does: { ask: true } } });
  expect(asked).toContain('__interrupt__');
  const state = await tenants.ask(user, 'GET', `/threads/${thread.thread_id}/state`);
  const history = await tenants.ask(user, 'GET', `/threads/${thread.thread_id}/history`);
  for (const secret of [token, header]) {
    expect(await placesOf(secret)).toEqual([]);
    for (const shown of [events, asked, state.text, history.text])
      expect(formsOf(secret).filter((form) => shown.includes(form))).toEqual([]);
  }
  expect(await tenants.database.owner.db.selectFrom('agent_run_users').select('run_id').execute()).toEqual(
    [],
  );
});
