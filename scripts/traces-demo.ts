// `npm run traces:demo`: a platform from nothing, a small tree of runs that the public JavaScript client traces, with an error and
// feedback, and what its queries, its statistics and the page of the platform show. The demo fails when it is not as expected.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Run } from 'langsmith';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';
import {
  createFirstKey,
  type DemoPlatform,
  endProcess,
  followPlatform,
  spawnPlatform,
} from './demo-platform.ts';

const PROJECT = 'harbour-guide';
const NAMES = ['respond', 'search', 'model', 'publish'];
const TEXT = 'There are 12 bridges.';
const PROBLEM = `"${TEXT}" has no author`;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

/** Runs the program that is traced. Returns the id of the root. */
async function trace(client: Client): Promise<string> {
  const shared = { client, project_name: PROJECT, tracingEnabled: true };
  const search = traceable(async (topic: string) => ({ documents: [`All about ${topic}`] }), {
    ...{ ...shared, name: 'search', run_type: 'retriever' },
  });
  const model = traceable(
    async ({ topic }: { readonly topic: string; readonly documents: readonly string[] }) => ({
      messages: [{ role: 'assistant', content: `There are 12 ${topic}.` }],
      usage_metadata: { input_tokens: 11, output_tokens: 6, total_tokens: 17 },
    }),
    { ...shared, name: 'model', run_type: 'llm', metadata: { ls_model_name: 'demo-model' } },
  );
  const publish = traceable(
    async (text: string) => {
      throw new Error(`"${text}" has no author`);
    },
    { ...shared, name: 'publish', run_type: 'tool', tags: ['writes'] },
  );
  let id = '';
  const respond = traceable(
    async (topic: string) => {
      id = getCurrentRunTree().id;
      const { documents } = await search(topic);
      const { messages } = await model({ topic, documents });
      const isPublished = await publish(messages[0]?.content ?? '').then(
        () => true,
        () => false,
      );
      return { text: messages[0]?.content, isPublished };
    },
    { ...shared, name: 'respond', run_type: 'chain', metadata: { session_id: 'a-conversation' } },
  );
  say(`\nawait respond('bridges')   # langsmith/traceable: ${NAMES.join(', ')}`);
  say(JSON.stringify(await respond('bridges')));
  await client.awaitPendingTraceBatches();
  return id;
}

async function list(client: Client, filter: string): Promise<readonly Run[]> {
  say(`\nclient.listRuns({ projectName: '${PROJECT}', filter: '${filter}' })`);
  const runs = await Array.fromAsync(client.listRuns({ projectName: PROJECT, filter }));
  for (const { name, run_type: type, status, total_tokens: tokens, error } of runs)
    say(`  ${name}  ${type}  ${status}  ${tokens ?? 'no'} tokens${error ? `  ${error.split('\n')[0]}` : ''}`);
  return runs;
}

async function showQueries(client: Client, root: string): Promise<void> {
  const all = await list(client, 'eq(is_root, true)');
  expect(
    all.length === 1 && all[0]?.id === root && all[0].status === 'success',
    'one trace, which succeeded',
  );
  const failed = await list(client, 'and(eq(status, "error"), has(tags, "writes"))');
  expect(failed.length === 1 && failed[0]?.name === 'publish', 'the run with an error is found');
  expect(failed[0]?.error?.includes(PROBLEM) === true, 'it has the message of its error');
  const costly = await list(client, 'and(eq(run_type, "llm"), gt(total_tokens, 10))');
  expect(costly.length === 1 && costly[0]?.total_tokens === 17, 'the run of a model has its tokens');
  const thread = await list(client, 'eq(thread_id, "a-conversation")');
  expect(
    thread.some(({ id }) => id === root),
    'the trace belongs to its thread',
  );
  say(`\nclient.createFeedback('${root}', 'helpful', { score: 1, comment: 'Short.' })`);
  const { session_id: sessionId = '' } = all[0] ?? {};
  await client.createFeedback(root, 'helpful', { score: 1, comment: 'Short.', sessionId });
  const liked = await list(client, 'and(eq(feedback_key, "helpful"), gt(feedback_score, 0.5))');
  expect(liked.length === 1 && liked[0]?.id === root, 'the trace is found by its feedback');
  say(`  feedback_stats: ${JSON.stringify(liked[0]?.feedback_stats)}`);
}

async function showStats(client: Client): Promise<void> {
  say(`\nclient.getRunStats({ projectNames: ['${PROJECT}'] })`);
  const stats = await client.getRunStats({ projectNames: [PROJECT] });
  const { run_count: runs, total_tokens: tokens, error_rate: errors, latency_p50: median } = stats;
  say(
    `  ${JSON.stringify({ run_count: runs, total_tokens: tokens, error_rate: errors, latency_p50: median })}`,
  );
  expect(runs === NAMES.length, 'four runs are counted');
  expect(errors === 1 / NAMES.length, 'a quarter of them failed');
}

/** As a browser does: the form of the sign-in, then pages with its cookie. */
async function signIn({ url, key }: DemoPlatform): Promise<string> {
  say('\n$ a browser: POST /login with the key');
  const response = await fetch(`${url}/login`, {
    ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams({ key, next: '/traces' }) },
    headers: { Origin: url, 'Sec-Fetch-Site': 'same-origin' },
  });
  const next = response.headers.get('location');
  say(`${response.status} to ${next}`);
  expect(response.status === 303 && next === '/traces', 'the sign-in leads to the page');
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

type Page = { readonly text: string; readonly links: readonly Link[] };
type Link = { readonly href: string; readonly text: string };

async function openPage({ url }: DemoPlatform, cookie: string, path: string): Promise<Page> {
  const response = await fetch(`${url}${path}`, { headers: { Cookie: cookie } });
  const html = await response.text();
  say(`\n$ a browser: GET ${path}\n${response.status} ${response.headers.get('content-type')}`);
  expect(response.status === 200, `${path} is a page: ${html.slice(0, 300)}`);
  const policy = response.headers.get('content-security-policy') ?? '';
  expect(policy.startsWith("default-src 'none'"), 'its policy allows nothing from elsewhere');
  const links = html
    .matchAll(/<a [^>]*href="([^"]*)"[^>]*>(.*?)<\/a>/gs)
    .map(([, href = '', text = '']) => ({ href: toText(href), text: toText(text) }))
    .toArray();
  return { text: toText(html), links };
}

/** Without tags; the characters that a page writes as entities are themselves. */
function toText(html: string): string {
  const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
  return html
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:#(\d+)|(\w+));/g, (all, code, name) =>
      code === undefined ? (named[name] ?? all) : String.fromCodePoint(Number(code)),
    )
    .replaceAll(/\s+/g, ' ');
}

function linkTo({ links }: Page, name: string): string {
  const link = links.find(({ text }) => text.includes(name));
  if (link === undefined) throw new Error(`not as expected: the page has a link "${name}"`);
  return link.href;
}

/** From the projects to the runs of one, and to the tree of a trace, by the links of the pages. */
async function showPages(platform: DemoPlatform): Promise<void> {
  const cookie = await signIn(platform);
  const projects = await openPage(platform, cookie, '/traces');
  const runs = await openPage(platform, cookie, linkTo(projects, PROJECT));
  say(`  ${runs.links.map(({ text }) => text.trim()).join(' | ')}`);
  const tree = await openPage(platform, cookie, linkTo(runs, 'respond'));
  for (const name of NAMES) expect(tree.text.includes(name), `the page of the trace has ${name}`);
  const failed = await openPage(platform, cookie, linkTo(tree, 'publish'));
  expect(failed.text.includes(PROBLEM), 'the page of the run has the message of its error');
  const costly = await openPage(platform, cookie, linkTo(tree, 'model'));
  expect(costly.text.includes(TEXT), 'the page of the run has its outputs');
  say(`  the trace has ${NAMES.join(', ')}; its pages have the error and the outputs`);
}

async function show(platform: DemoPlatform): Promise<void> {
  const client = new Client({ apiUrl: platform.url, apiKey: platform.key });
  const root = await trace(client);
  await showQueries(client, root);
  await showStats(client);
  await showPages(platform);
}

// The client says of calls of its API that a later one will replace them.
process.noDeprecation = true;
const scratch = await mkdtemp(join(tmpdir(), 'sallyport-traces-'));
// Under root the database runs as another user.
await chmod(scratch, 0o755);
try {
  const data = join(scratch, 'data');
  say('$ KEY=$(sallyport platform init)');
  const key = await createFirstKey(data);
  say('$ sallyport platform');
  const child = spawnPlatform(data, undefined, { SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'attached' });
  try {
    const platform = await followPlatform(child, { key, data });
    say(`ready at ${platform.url}\n$ export LANGSMITH_ENDPOINT=${platform.url} LANGSMITH_API_KEY=$KEY`);
    await show(platform);
  } finally {
    await endProcess(child);
  }
  say('\nEverything was as expected.');
} finally {
  await rm(scratch, { recursive: true, force: true });
}
