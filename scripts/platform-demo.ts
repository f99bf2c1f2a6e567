// `npm run platform:demo`: starts a platform from nothing and shows what its audit log detects. Every step is a command
// that a user could type. Its output is printed and checked, and the demo fails when it is not as expected.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectOnce } from '../src/platform/store/database.ts';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';

const root = join(import.meta.dirname, '..');
const sallyport = join(root, 'bin', 'sallyport.js');

type Ended = { readonly code: number; readonly out: string; readonly err: string };
type Event = {
  readonly time: number;
  readonly api: { readonly operation: string };
  readonly status: string;
  readonly resources?: readonly { readonly uid: string }[];
};

/** Waits for the end. `input` goes to standard input, so that no key appears among the arguments. */
async function runToEnd(command: string, args: readonly string[], input = ''): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const child = execFile(command, [...args], { cwd: root }, (error, out, err) => {
    if (error !== null && typeof error.code !== 'number') throw error;
    resolve({ code: Number(error?.code ?? 0), out, err });
  });
  child.stdin?.end(input);
  return promise;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

/** The platform, once it is ready. */
async function startPlatform(data: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const args = [sallyport, 'platform', '--data-dir', data, '--listen', '127.0.0.1:0'];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const entry: { readonly msg?: string; readonly api?: string } = JSON.parse(line);
    if (entry.msg !== 'ready' || entry.api === undefined) continue;
    child.stdout.resume();
    return { child, url: entry.api };
  }
  throw new Error('the platform did not start');
}

async function stop(child: ChildProcess): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  child.once('exit', resolve);
  child.kill('SIGTERM');
  expect((await promise) === 0, 'the platform ends with code 0');
}

/** Sends one request with curl. Returns its status and its document. */
async function curl(key: string, method: string, url: string, body?: unknown): Promise<[number, unknown]> {
  const sent = body === undefined ? [] : ['--json', JSON.stringify(body)];
  const shown = sent.map((part) => (part.startsWith('{') ? `'${part}'` : part)).join(' ');
  say(`\n$ curl -H "X-Api-Key: $KEY" -X ${method} ${shown}${shown === '' ? '' : ' '}'${url}'`);
  const args = ['-sS', '-H', '@-', '-X', method, ...sent, '-w', '\n%{http_code}', url];
  const { code, out, err } = await runToEnd('curl', args, `X-Api-Key: ${key}\n`);
  if (code !== 0) throw new Error(`curl: ${err}`);
  const at = out.lastIndexOf('\n');
  const status = Number(out.slice(at + 1));
  const text = out.slice(0, at);
  say(`${status} ${text.length > 400 ? `${text.slice(0, 400)} ...` : text}`);
  return [status, text === '' ? undefined : JSON.parse(text)];
}

async function useListener(key: string, url: string): Promise<string> {
  const wanted = {
    compute_type: 'k8s',
    compute_id: 'demo-cluster',
    compute_config: { k8s_namespaces: ['agents'] },
  };
  const [created, listener] = await curl(key, 'POST', `${url}/v2/listeners`, wanted);
  expect(created === 201, 'a listener is created');
  const { id } = listener as { readonly id: string };
  expect((await curl(key, 'GET', `${url}/v2/listeners/${id}`))[0] === 200, 'it is read');
  expect((await curl(key, 'DELETE', `${url}/v2/listeners/${id}`))[0] === 204, 'it is deleted');
  expect((await curl(key, 'GET', `${url}/v2/listeners/${id}`))[0] === 404, 'it no longer exists');
  return id;
}

async function showEvents(key: string, url: string, id: string): Promise<void> {
  const query = 'operations=create_listener&operations=delete_listener';
  const [status, found] = await curl(key, 'GET', `${url}/api/v1/audit-logs?${query}`);
  expect(status === 200, 'the audit log is read');
  const { items } = found as { readonly items: readonly Event[] };
  say('\nIts events, newest first:');
  for (const { time, api, status: outcome, resources = [] } of items)
    say(
      `  ${new Date(time).toISOString()}  ${api.operation}  ${outcome}  ${resources.map(({ uid }) => uid).join(' ')}`,
    );
  const own = items.filter(({ resources = [] }) => resources.some(({ uid }) => uid === id));
  expect(own.length === 2, 'creating and deleting it left one event each');
}

async function verify(data: string, expected: number): Promise<Ended> {
  say('\n$ sallyport audit verify');
  const ended = await runToEnd(process.execPath, [sallyport, 'audit', 'verify', '--data-dir', data]);
  say(`${ended.out}${ended.err}`.trimEnd());
  say(`exit code ${ended.code}`);
  expect(ended.code === expected, `the verifier ends with code ${expected}`);
  return ended;
}

/** As an administrator of the database could, bypassing every trigger. Returns the id of the event. */
async function tamper(data: string): Promise<string> {
  const silent = { info: () => {}, warn: () => {} };
  const server = await openPostgres({ directory: join(data, 'database'), log: silent });
  try {
    return await connectOnce(server.ownerConnection, async (client) => {
      await client.query('set session_replication_role = replica');
      const edit = `update audit_events set operation = 'login' where operation = 'delete_listener' returning id`;
      say(`\n# As the superuser of the database, with its triggers off:\n${edit}`);
      const { rows } = await client.query<{ readonly id: string }>(edit);
      expect(rows.length === 1, 'one row is edited');
      return rows[0]?.id ?? '';
    });
  } finally {
    await server.close();
  }
}

async function show(data: string): Promise<void> {
  say('$ KEY=$(sallyport platform init)');
  const created = await runToEnd(process.execPath, [sallyport, 'platform', 'init', '--data-dir', data]);
  expect(created.code === 0, `the first key is created: ${created.err}`);
  say(created.err.trimEnd());
  const key = created.out.trim();
  say(`${key.slice(0, 10)}... (shown in full once, when you do this)`);
  say('\n$ sallyport platform');
  const { child, url } = await startPlatform(data);
  say(`ready at ${url}; its documents are at ${url}/docs`);
  try {
    const id = await useListener(key, url);
    await showEvents(key, url, id);
  } finally {
    await stop(child);
  }
  await verify(data, 0);
  const edited = await tamper(data);
  const { out, err } = await verify(data, 1);
  expect(`${out}${err}`.includes(edited), 'the verifier names the edited event');
  say('\nEverything was as expected.');
}

const scratch = await mkdtemp(join(tmpdir(), 'sallyport-platform-'));
// Under root the database runs as another user.
await chmod(scratch, 0o755);
try {
  await show(join(scratch, 'data'));
} finally {
  await rm(scratch, { recursive: true, force: true });
}
