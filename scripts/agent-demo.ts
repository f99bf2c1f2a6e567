// `npm run agent:demo`: an agent server from nothing, with the graph of config/agent-demo, which needs no model. Every step is a
// request that a client could send; its response is printed and checked, and the demo fails when it is not as expected.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const sallyport = join(root, 'bin', 'sallyport.js');
const config = join(root, 'config', 'agent-demo', 'langgraph.json');

type Json = Readonly<Record<string, unknown>>;
type Reply = { readonly status: number; readonly body: Json };
type Frame = { readonly event: string; readonly data: Json; readonly id: string };
type Client = {
  readonly url: string;
  readonly token?: string;
};

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

async function startServer(data: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const args = [sallyport, 'agent-server', '--config', config, '--data-dir', data, '--listen', '127.0.0.1:0'];
  say('$ sallyport agent-server --config config/agent-demo/langgraph.json');
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const entry: { readonly msg?: string; readonly api?: string } = JSON.parse(line);
    if (entry.msg !== 'ready' || entry.api === undefined) continue;
    child.stdout.resume();
    return { child, url: entry.api };
  }
  throw new Error('the agent server did not start');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  child.once('exit', resolve);
  child.kill('SIGTERM');
  expect((await promise) === 0, 'the agent server ends with code 0');
}

function send(
  { url, token }: Client,
  method: string,
  path: string,
  body?: Json,
  headers: Readonly<Record<string, string>> = {},
) {
  return fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function ask(client: Client, method: string, path: string, body?: Json): Promise<Reply> {
  say(`\n$ ${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`);
  const response = await send(client, method, path, body);
  const text = await response.text();
  say(`${response.status} ${text.trim().slice(0, 300)}`);
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

/** Reads frames until the stream ends, or until it has `most` of them and leaves. */
async function readFrames(
  response: Response,
  most: number = Number.POSITIVE_INFINITY,
): Promise<readonly Frame[]> {
  const frames: Frame[] = [];
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const field = (name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(part)?.[1] ?? '';
      if (field('data') === '') continue;
      frames.push({ event: field('event'), data: JSON.parse(field('data')), id: field('id') });
      say(`  ${field('id')} ${field('event')} ${field('data').slice(0, 160)}`);
      if (frames.length >= most) return frames;
    }
  }
  return frames;
}

async function showAccess(url: string): Promise<Client> {
  const nobody = await ask({ url }, 'GET', '/threads');
  expect(nobody.status === 401 && typeof nobody.body['detail'] === 'string', '401 with a detail');
  return { url, token: 'token-of-ada' };
}

async function showAssistants(ada: Client): Promise<string> {
  const byDefault = await ask(ada, 'GET', '/assistants/publisher');
  expect(byDefault.body['graph_id'] === 'publisher', 'the default assistant of the graph');
  const made = await ask(ada, 'POST', '/assistants', { graph_id: 'publisher', context: { tone: 'calm' } });
  const id = String(made.body['assistant_id']);
  const patched = await ask(ada, 'PATCH', `/assistants/${id}`, { context: { tone: 'bold' } });
  expect(patched.body['version'] === 2, 'a new version');
  expect((await noteOf(ada, id)).startsWith('bold'), 'runs use the new version');
  const back = await ask(ada, 'POST', `/assistants/${id}/latest`, { version: 1 });
  expect(back.body['version'] === 1, 'the first version again');
  expect((await noteOf(ada, id)).startsWith('calm'), 'runs use the first version');
  return id;
}

async function noteOf(client: Client, assistant: string): Promise<string> {
  const run = { assistant_id: assistant, input: { topic: 'harbours' } };
  const { status, body } = await ask(client, 'POST', '/runs/wait', run);
  expect(status === 200, 'a run without a thread');
  const [asked] = body['__interrupt__'] as readonly { readonly value: { readonly note: string } }[];
  return asked?.value.note ?? '';
}

async function showInterrupt(ada: Client, assistant: string): Promise<string> {
  const { body: thread } = await ask(ada, 'POST', '/threads', {});
  const path = `/threads/${String(thread['thread_id'])}`;
  const run = { assistant_id: assistant, input: { topic: 'bridges' }, stream_mode: ['updates'] };
  say(`\n$ POST ${path}/runs/stream ${JSON.stringify(run)}`);
  const frames = await readFrames(await send(ada, 'POST', `${path}/runs/stream`, run));
  expect(frames[0]?.event === 'metadata', 'metadata is the first event');
  expect(frames.at(-1)?.data['__interrupt__'] !== undefined, 'the run stops and asks');
  expect((await ask(ada, 'GET', path)).body['status'] === 'interrupted', 'the thread waits');
  const resumed = { assistant_id: assistant, command: { resume: 'yes' } };
  const { body } = await ask(ada, 'POST', `${path}/runs/wait`, resumed);
  expect(String(body['log']) === 'drafted,reviewed: yes,published by ada', 'it goes on where it stopped');
  const asBob = await ask({ ...ada, token: 'token-of-bob' }, 'GET', path);
  expect(asBob.status === 404, 'another user does not see the thread');
  return path;
}

async function showResumedStream(ada: Client, path: string): Promise<void> {
  const run = {
    ...{ assistant_id: 'publisher', input: { topic: 'roads' }, stream_mode: ['values', 'updates'] },
    stream_resumable: true,
  };
  say(`\n$ POST ${path}/runs/stream ${JSON.stringify(run)}, and leave after two events`);
  const response = await send(ada, 'POST', `${path}/runs/stream`, run);
  const location = response.headers.get('location') ?? '';
  const first = await readFrames(response, 2);
  const last = first.at(-1)?.id ?? '';
  say(`\n$ GET ${location} with Last-Event-ID: ${last}`);
  const rest = await readFrames(await send(ada, 'GET', location, undefined, { 'last-event-id': last }));
  const ids = [...first, ...rest].map(({ id }) => Number(id));
  expect(ids.length > 3 && ids.every((id, at) => id === at), 'no event is missing, none comes twice');
}

const directory = await mkdtemp(join(tmpdir(), 'sallyport-agent-demo-'));
// Root's database runs as another user, who must be able to enter it.
await chmod(directory, 0o711);
let child: ChildProcess | undefined;
try {
  const server = await startServer(join(directory, 'data'));
  child = server.child;
  const ada = await showAccess(server.url);
  const assistant = await showAssistants(ada);
  const thread = await showInterrupt(ada, assistant);
  await showResumedStream(ada, thread);
  await stop(child);
  say('\nEverything was as expected.');
} finally {
  child?.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
}
