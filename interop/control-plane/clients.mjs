// Runs the public deploy commands, unchanged, against a platform of this checkout: each deploys a real graph, whose packages the
// platform installs, looks at it, deploys a change, and deletes it. Ends with 1 when something was not as expected.
//
//   node clients.mjs PYTHON
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startScene } from '../../scripts/deployment-scene.ts';
import { javascriptCommand, pythonCommand, runDeploy } from './commands.mjs';

const [, , python] = process.argv;
const clients = [javascriptCommand(), ...(python === undefined ? [] : [pythonCommand(python)])];
let failed = 0;

function check(isTrue, what, details = '') {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${what}`);
  if (isTrue) return;
  failed += 1;
  if (details !== '') console.log(details.replaceAll(/^/gm, '      '));
}

/** Runs a command and checks that it succeeds. */
async function run(client, args, scene) {
  const ended = await runDeploy(client, args, scene);
  check(ended.code === 0, `deploy ${args.join(' ')}`, `${ended.stdout}${ended.stderr}`);
  return ended.stdout;
}

/** Deploys, and returns the result that the command prints as JSON. */
async function deploy(client, name, scene) {
  const began = Date.now();
  const printed = await run(client, ['--remote', '--json', '--no-input', '--name', name], scene);
  const events = printed
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  const result = events.findLast(({ event }) => event === 'result') ?? {};
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  check(result.status === 'succeeded', `the result is a success, after ${seconds} s`, printed);
  check(
    events.some(({ event }) => event === 'status_url'),
    'the address of its page is known',
  );
  return result;
}

const PATIENCE_MS = 60_000;

/** The deletion is a matter of the runner: the list has the deployment until nothing of it is left. */
async function listUntilDeleted(client, id, scene) {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const left = await runDeploy(client, ['list'], scene);
    if (!left.stdout.includes(id) || performance.now() > endMs) return `${left.stdout}${left.stderr}`;
    await delay(1_000);
  }
}

/** Runs the graph through the gateway, as its users do. */
async function call({ url }, { key }, expected) {
  const response = await fetch(`${url}/runs/wait`, {
    method: 'POST',
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'agent', input: { text: 'there' } }),
  });
  const body = await response.text();
  check(response.status === 200 && body.includes(expected), `the graph says "${expected}"`, body);
}

async function useClient(client, name, scene) {
  console.log(`== ${client.name}`);
  const result = await deploy(client, name, scene);
  await call(result, scene, 'Hello there');
  const builds = await run(client, ['logs', '--name', name, '--type', 'build', '--limit', '100'], scene);
  check(
    /\$ npm ci[^]*added \d+ packages/.test(builds) || /installed before/.test(builds),
    'the log of the build has the installation',
    builds,
  );
  const listed = await run(client, ['list'], scene);
  const id = result.deployment_id;
  check(
    listed.includes(id) && listed.includes(name) && listed.includes(result.url),
    'the list has it',
    listed,
  );
  const file = join(scene.cwd, 'agent.ts');
  await writeFile(file, (await readFile(file, 'utf8')).replace('${text}', '${text} again'));
  await call(await deploy(client, name, scene), scene, 'Hello there again');
  const revisions = await run(client, ['revisions', 'list', id], scene);
  check(
    / DEPLOYED /.test(revisions) && / REPLACED /.test(revisions),
    'one is deployed, one replaced',
    revisions,
  );
  const again = await run(client, ['logs', '--name', name, '--type', 'build'], scene);
  check(/installed before/.test(again), 'its packages were there already', again);
  const logs = await run(client, ['logs', '--deployment-id', id, '--limit', '20'], scene);
  check(logs.trim() !== '' && !logs.includes('No log'), 'the log of the deployment has lines', logs);
  await run(client, ['delete', id, '--force'], scene);
  const left = await listUntilDeleted(client, id, scene);
  check(!left.includes(id), 'it is deleted', left);
}

await using cleanup = new AsyncDisposableStack();
const scene = await startScene(cleanup);
for (const [at, client] of clients.entries()) {
  const cwd = join(scene.scratch, `source-${at}`);
  await cp(join(import.meta.dirname, 'source'), cwd, { recursive: true });
  await writeFile(join(cwd, '.env'), 'GREETING=Hello\nLANGSMITH_API_KEY=reserved\n');
  await useClient(client, `client-${at}`, { url: scene.url, key: scene.key, cwd });
}
console.log(failed === 0 ? 'everything was as expected' : `${failed} checks failed`);
await cleanup.disposeAsync();
process.exit(failed === 0 ? 0 : 1);
