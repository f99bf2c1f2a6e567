// Runs both public clients of traces, unchanged, against a platform of this checkout: all that they send and read, by each encoding of
// their requests, and while requests fail and the platform is killed. Ends with 1 when something was not as expected.
//
//   node clients.mjs PYTHON
import { isDeepStrictEqual } from 'node:util';
import { expectedTree, expectedWhole } from './expected.mjs';
import { startFaultProxy } from './fault-proxy.mjs';
import { startTracePlatform } from './platform.mjs';
import { programs, runClient } from './programs.mjs';

const [, , python] = process.argv;
const clients = Object.entries(programs(python));
let failed = 0;
let projects = 0;

function check(isTrue, what, details = '') {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${what}`);
  if (isTrue) return;
  failed += 1;
  if (details !== '') console.log(details.replaceAll(/^/gm, '      '));
}

const newProject = (name) => `${name} ${(projects += 1)}`;

function checkSteps({ code, steps, warnings }, expected) {
  check(code === 0, 'the client ends with 0', warnings);
  for (const [step, value] of Object.entries(expected))
    check(
      isDeepStrictEqual(steps[step], value),
      step,
      `expected ${JSON.stringify(value)}\ngot      ${JSON.stringify(steps[step])}`,
    );
}

/** What a client sends and reads, with its endpoint set in one of three ways. */
async function readEverything([name, command], platform, prefix) {
  console.log(`== ${name}, all of it, at ${prefix === '' ? '/' : prefix}`);
  const args = ['whole', `${platform.url}${prefix}`, platform.key, newProject(name)];
  checkSteps(await runClient(command, args), expectedWhole(name));
}

const PLAIN = { LANGSMITH_DISABLE_RUN_COMPRESSION: 'true' };
const withoutMultipart = (info) => ({
  ...info,
  batch_ingest_config: { ...info.batch_ingest_config, use_multipart_endpoint: false },
});
const notFound = (path) => (path === '/runs/multipart' ? { status: 404 } : undefined);

/** By the client: how it is made to send runs in another way, and what the proxy must see. */
const WAYS = {
  javascript: [
    { title: 'multipart with gzip', path: '/runs/multipart', encoding: 'gzip' },
    { title: 'multipart, uncompressed', env: PLAIN, path: '/runs/multipart', encoding: 'identity' },
    { title: 'batch after a 404', proxy: { faultOf: notFound }, path: '/runs/batch', encoding: 'identity' },
  ],
  python: [
    { title: 'multipart with zstd', path: '/runs/multipart', encoding: 'zstd' },
    { title: 'multipart, uncompressed', env: PLAIN, path: '/runs/multipart', encoding: 'identity' },
    {
      ...{ title: 'batch, as /info wants it', proxy: { changeInfo: withoutMultipart } },
      ...{ path: '/runs/batch', encoding: 'identity' },
    },
  ],
};

async function sendInAWay([name, command], platform, { title, env, proxy: faults, path, encoding }) {
  console.log(`== ${name}, ${title}`);
  const proxy = await startFaultProxy(platform.url, faults);
  try {
    const ended = await runClient(command, ['tree', proxy.url, platform.key, newProject(name)], env);
    checkSteps(ended, expectedTree(name, { hasAttachments: path === '/runs/multipart' }));
    const taken = proxy.requests.filter(({ status }) => status === 202);
    const seen = new Set(taken.map((one) => `${one.path} ${one.encoding}`));
    check(
      isDeepStrictEqual([...seen], [`${path} ${encoding}`]),
      `sent by ${path} with ${encoding}`,
      JSON.stringify(proxy.requests),
    );
  } finally {
    await proxy.close();
  }
}

/** Only the Python client has it, and only for a server that says it is as new as this. */
async function sendFeedbackPart([name, command], platform) {
  console.log(`== ${name}, feedback as a part`);
  const proxy = await startFaultProxy(platform.url, {
    changeInfo: (info) => ({ ...info, version: '0.9.0' }),
  });
  try {
    const ended = await runClient(command, ['feedback_part', proxy.url, platform.key, newProject(name)]);
    checkSteps(ended, { 'feedback of the run': [['helpful', 0.5, 'Short.']] });
    check(
      proxy.others.every((path) => path !== '/feedback'),
      'by no request of its own',
      proxy.others.join(),
    );
  } finally {
    await proxy.close();
  }
}

/** In this order, each for one request: what follows is the request that the client sends again. */
const FAULTS = [
  { status: 503, fields: { 'retry-after': '1' } },
  { status: 429, fields: { 'retry-after': '1' } },
  { cut: 'head' },
  { cut: 'body' },
  { cut: 'response' },
  { cut: 'body', isKill: true },
  { cut: 'response', isKill: true },
];

/** Undefined for the requests between two faults, so that each is followed by one that is relayed, and while the platform is away. */
function createPlan(platform, restarts) {
  const left = FAULTS.flatMap((fault) => [undefined, fault]);
  let isAway = false;
  const restart = async () => {
    isAway = true;
    const ms = await platform.restart();
    isAway = false;
    return ms;
  };
  const faultOf = () => {
    if (isAway) return undefined;
    const fault = left.shift();
    return fault?.isKill ? { ...fault, during: () => void restarts.push(restart()) } : fault;
  };
  return { faultOf, left };
}

async function ask({ url, key }, path, body) {
  const response = await fetch(`${url}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function readRuns(platform, project) {
  const [session] = await ask(platform, `/sessions?name=${encodeURIComponent(project)}`);
  const runs = [];
  let cursor;
  do {
    const body = { session: [session.id], limit: 50, cursor };
    const page = await ask(platform, '/runs/query', body);
    runs.push(...page.runs);
    cursor = page.cursors?.next ?? undefined;
  } while (cursor !== undefined);
  return runs;
}

/** What is missing of a run, or is not as its client had it. */
function problemOf(run, { name, parent, inputs, outputs }) {
  if (run === undefined) return `${name} is missing`;
  if (run.end_time === null || run.status !== 'success') return `${name} has no end`;
  if (run.name !== name || (run.parent_run_id ?? null) !== parent) return `${name} is another run`;
  if (!isDeepStrictEqual(run.inputs, inputs)) return `${name} has other inputs`;
  return isDeepStrictEqual(run.outputs, outputs) ? undefined : `${name} has other outputs`;
}

async function survive([name, command], platform) {
  console.log(`== ${name}, with ${FAULTS.length} faults, of which two kill the platform`);
  const restarts = [];
  const { faultOf, left } = createPlan(platform, restarts);
  const proxy = await startFaultProxy(platform.url, { faultOf });
  try {
    const project = newProject(name);
    const { code, steps, warnings } = await runClient(command, ['load', proxy.url, platform.key, project]);
    check(code === 0, 'the client ends with 0', warnings);
    check(left.length === 0, 'every fault was injected', JSON.stringify(left));
    const runs = await readRuns(platform, project);
    const byId = new Map(runs.map((run) => [run.id, run]));
    const expected = steps.expected ?? [];
    check(runs.length === expected.length, `${expected.length} runs are there once`, `${runs.length} runs`);
    const problems = expected.map((one) => problemOf(byId.get(one.id), one)).filter(Boolean);
    const awayMs = await Promise.all(restarts);
    check(awayMs.length === 2, 'the platform was killed twice', awayMs.join());
    const away = awayMs.map((ms) => (ms / 1000).toFixed(1)).join(' and ');
    check(
      problems.length === 0 && expected.length > 0,
      `each of them whole; the platform was away for ${away} s`,
      `${problems.join('\n')}\n${warnings}`,
    );
  } finally {
    await proxy.close();
  }
}

await using cleanup = new AsyncDisposableStack();
const platform = await startTracePlatform(cleanup);
for (const [at, client] of clients.entries()) {
  await readEverything(client, platform, ['/api/v1', '/api'][at]);
  for (const way of WAYS[client[0]]) await sendInAWay(client, platform, way);
  if (client[0] === 'python') await sendFeedbackPart(client, platform);
  await survive(client, platform);
}
check(platform.problems().length === 0, 'the platform logged no error', JSON.stringify(platform.problems()));
console.log(failed === 0 ? 'everything was as expected' : `${failed} checks failed`);
await cleanup.disposeAsync();
process.exit(failed === 0 ? 0 : 1);
