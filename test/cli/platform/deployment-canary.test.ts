// Secrets of a deployment, from the call that sets them to the code that gets them: nowhere else are they found. Real processes, and every place that
// they pass or could be left in.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, type PoolConfig } from 'pg';
import { expect, it } from 'vitest';
import {
  createDeploymentPlatform,
  type DeploymentPlatform,
  runnerReady,
} from '../../support/deployment-platform.ts';

const patience = { timeout: 60_000, interval: 100 };
/** Of an ordinary kind, and one that is longer than any line of a log. */
const POSTED = 'c4n4ry-posted-"\\/+ä-value';
const PATCHED = 'c4n4ry-patched-value-0123456789';
const LONG = `c4n4ry-long-${'0123456789abcdef'.repeat(2_000)}`;

/** It prints what it has, as code with an error in its logging does, and returns a digest alone. */
const GRAPH = `
import { createHash } from 'node:crypto';
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ digest: Annotation() });
const value = process.env.CANARY ?? '';
const long = process.env.LONG_CANARY ?? '';
console.log('raw ' + value);
console.log(JSON.stringify({ level: 'info', msg: 'object', value, nested: { value } }));
console.log('base64 ' + Buffer.from(value).toString('base64'));
console.log('url ' + encodeURIComponent(value));
console.log('long ' + long);
console.error(new Error('thrown ' + value));
export const graph = new StateGraph(State)
  .addNode('say', async () => {
    console.log('in the node ' + process.env.CANARY);
    return { digest: createHash('sha256').update(value + long).digest('hex') };
  })
  .addEdge('__start__', 'say')
  .compile();
`;

/** A part that no text has by chance, in the encodings of tables, files and logs. */
const LEAKS: readonly Buffer[] = [POSTED, PATCHED, LONG].flatMap((value) => {
  const part = value.slice(0, 15);
  const bytes = Buffer.from(part);
  const base64 = [0, 1, 2].map((before) =>
    // Wherever the value begins in what is encoded: without the characters that depend on its neighbours.
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .slice(before === 0 ? 0 : 4, -4),
  );
  return [
    bytes,
    Buffer.from(part, 'utf16le'),
    Buffer.from(part, 'utf16le').swap16(),
    Buffer.from(bytes.toString('hex')),
    Buffer.from(bytes.toString('hex').toUpperCase()),
    Buffer.from(Buffer.from(part, 'utf16le').toString('hex')),
    ...base64.map((text) => Buffer.from(text)),
    ...base64.map((text) => Buffer.from(Buffer.from(text).toString('hex'))),
  ];
});

function findLeaks(content: Buffer | string): readonly string[] {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return LEAKS.filter((leak) => bytes.includes(leak)).map(String);
}

/** Each table with its rows as text, where bytes are hexadecimal digits. */
async function readTables(connection: PoolConfig): Promise<ReadonlyMap<string, string>> {
  const client = new Client(connection);
  await client.connect();
  const found = new Map<string, string>();
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  for (const { name } of rows) {
    const all = await client.query<{ text: string | null }>(
      `select string_agg(t::text, E'\\n') as text from ${name} t`,
    );
    found.set(name, all.rows[0]?.text ?? '');
  }
  await client.end();
  return found;
}

async function readFiles(directory: string): Promise<ReadonlyMap<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const name of await readdir(directory, { recursive: true })) {
    const path = join(directory, name);
    // What ends meanwhile is gone.
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.isFile() === true) found.set(path, await readFile(path).catch(() => Buffer.alloc(0)));
  }
  return found;
}

/** Arguments and variables of all processes of this machine, without those of agent servers of this directory and of what these start. */
function readProcesses(dataDirectory: string): ReadonlyMap<string, string> {
  const read = (pid: string, name: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, 'latin1');
    } catch {
      return '';
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(pids.map((pid) => [pid, /\) \S (\d+) /.exec(read(pid, 'stat'))?.[1] ?? '0']));
  const isAgent = (pid: string): boolean => {
    for (let one = pid; one !== '0'; one = parents.get(one) ?? '0') {
      const line = read(one, 'cmdline');
      if (line.includes('\0agent-server\0') && line.includes(dataDirectory)) return true;
    }
    return false;
  };
  const others = pids.filter((pid) => !isAgent(pid));
  expect(others.length).toBeLessThan(pids.length);
  return new Map(others.map((pid) => [pid, `${read(pid, 'cmdline')}${read(pid, 'environ')}`]));
}

type Reply = { readonly status: number; readonly text: string };

async function ask(url: string, key: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') {
  // A connection that is kept would keep the platform from ending.
  const headers = { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url, { method, headers, ...sent });
  return { status: response.status, text: await response.text() } satisfies Reply;
}

async function callGraph(gateway: unknown, id: string, key: string): Promise<Reply> {
  const wanted = { assistant_id: 'agent', input: {} };
  return ask(`${String(gateway)}/d/${id}/runs/wait`, key, wanted).catch((error: unknown) => ({
    status: 0,
    text: String(error),
  }));
}

/** Of the deployment: all that a caller can read about it. */
async function readReplies(api: string, key: string, id: string): Promise<ReadonlyMap<string, string>> {
  const revisions = await ask(`${api}/v2/deployments/${id}/revisions`, key);
  const ids = (JSON.parse(revisions.text).resources as { id: string }[]).map((one) => one.id);
  const page = { limit: 1_000 };
  const replies = new Map<string, string>([['revisions', revisions.text]]);
  for (const path of ['/v2/deployments', `/v2/deployments/${id}`, '/api/v1/audit-logs'])
    replies.set(path, (await ask(`${api}${path}`, key)).text);
  for (const revisionId of ids) {
    const path = `/v2/deployments/${id}/revisions/${revisionId}`;
    replies.set(path, (await ask(`${api}${path}`, key)).text);
    for (const kind of ['build_logs', 'deploy_logs']) {
      const logs = `/v1/projects/${id}/revisions/${revisionId}/${kind}`;
      replies.set(logs, (await ask(`${api}${logs}`, key, page)).text);
    }
  }
  return replies;
}

function expectNoLeak(places: ReadonlyMap<string, Buffer | string>): void {
  const leaks = [...places].flatMap(([place, content]) =>
    findLeaks(content).map((leak) => `${place}: ${leak}`),
  );
  expect(leaks).toEqual([]);
}

async function databasesOf({ database }: DeploymentPlatform): Promise<readonly PoolConfig[]> {
  const rows = await database.store.db.selectFrom('runner_databases').select('name').execute();
  return [
    database.ownerConnection,
    ...rows.map(({ name }) => ({ ...database.ownerConnection, database: name })),
  ];
}

it('the search finds a value in each encoding', () => {
  const hidden = [
    ...[`x${PATCHED}y`, Buffer.from(PATCHED).toString('hex'), Buffer.from(`ab${PATCHED}`).toString('base64')],
    ...[`\\x${Buffer.from(PATCHED, 'utf16le').toString('hex')}`, Buffer.from(PATCHED, 'utf16le')],
  ];
  for (const one of hidden) expect(findLeaks(one)).not.toEqual([]);
  expect(findLeaks('c4n4ry')).toEqual([]);
});

it('secrets of a deployment are sealed and in its processes, and nowhere else', {
  tags: ['long'],
  timeout: 240_000,
}, async () => {
  await using scene = await createDeploymentPlatform();
  // What is replaced is not waited for.
  const platform = await scene.start({ SALLYPORT_PLATFORM_RUNNER_DRAIN_MS: '1000' });
  const { port } = await platform.ready;
  const api = `http://127.0.0.1:${port}`;
  const { key } = scene;
  const { id, revisionId } = await scene.addDeployment(GRAPH);
  const { gateway } = await runnerReady(platform);
  await expect.poll(() => scene.statusOf(revisionId), patience).toBe('DEPLOYED');

  const replies = new Map<string, string>();
  const post = { name: 'other', source: 'internal_source', source_config: {}, source_revision_config: {} };
  const created = await ask(`${api}/v2/deployments`, key, {
    ...post,
    secrets: [{ name: 'CANARY', value: POSTED }],
  });
  expect(created.status).toBe(201);
  // What is refused is not quoted either.
  const wrong = await ask(`${api}/v2/deployments`, key, {
    ...post,
    secrets: [{ name: POSTED, value: POSTED }],
  });
  expect(wrong.status).toBe(422);
  const secrets = [
    { name: 'CANARY', value: PATCHED },
    { name: 'LONG_CANARY', value: LONG },
  ];
  const patched = await ask(`${api}/v2/deployments/${id}`, key, { secrets }, 'PATCH');
  expect(patched.status).toBe(200);
  const redeployed = await ask(`${api}/v2/deployments/${id}/revisions/${revisionId}/redeploy`, key, {});
  expect(redeployed.status).toBe(200);
  for (const [name, { text }] of Object.entries({ created, patched, redeployed })) replies.set(name, text);

  const digest = createHash('sha256')
    .update(PATCHED + LONG)
    .digest('hex');
  await expect.poll(async () => (await callGraph(gateway, id, key)).text, patience).toContain(digest);
  const shown = async (): Promise<string> => [...(await readReplies(api, key, id)).values()].join('\n');
  await expect.poll(shown, patience).toContain('in the node ***');

  expectNoLeak(new Map([...replies, ...(await readReplies(api, key, id))]));
  for (const connection of await databasesOf(scene)) expectNoLeak(await readTables(connection));
  expectNoLeak(readProcesses(scene.dataDirectory));
  expectNoLeak(await readFiles(scene.dataDirectory));
  const sealed = await scene.database.owner.db.selectFrom('deployment_secrets').select('name').execute();
  expect(sealed.map(({ name }) => name).toSorted()).toEqual(['CANARY', 'CANARY', 'LONG_CANARY']);

  platform.process.kill('SIGTERM');
  await platform.process.exited;
  expectNoLeak(
    new Map([
      ['the standard output', platform.process.stdout],
      ['the standard error', platform.process.stderr],
    ]),
  );
  expectNoLeak(await readFiles(scene.dataDirectory));
});
