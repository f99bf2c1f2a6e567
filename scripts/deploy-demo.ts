// `npm run deploy:demo`: a platform from nothing and a deployment on it. It is called through the gateway, changed, broken, which what
// was deployed before survives, and rolled back. The demo fails when it is not so.
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createEchoOrigin, type LocalOrigin } from '../src/cli/echo-origin.ts';
import { ask, showEvents } from './demo-platform.ts';
import { type DeploymentScene, type Ended, startScene } from './deployment-scene.ts';

const root = join(import.meta.dirname, '..');
const HOST = 'api.localhost';
/** In two halves, so that a search finds it in a leak, but not in this source. */
const SECRET = ['sk-demo', '4Rk8sVq2LmZ6'].join('-');

type Json = Readonly<Record<string, unknown>>;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

/** Runs `sallyport deploy` and prints what it prints. */
async function deploy(scene: DeploymentScene, args: readonly string[], code: number): Promise<Ended> {
  const shown = args.map((arg) => arg.replace(`${scene.scratch}/`, ''));
  say(`\n$ sallyport deploy ${shown.join(' ')}`);
  const ended = await scene.deploy(args);
  for (const line of `${ended.stderr}${ended.stdout}`.trimEnd().split('\n')) say(`  ${line.slice(0, 200)}`);
  expect(ended.code === code, `the command ends with ${code}, and it was ${ended.code}`);
  return ended;
}

/** Runs the graph through the gateway. */
async function greet({ key }: DeploymentScene, url: string, input: Json): Promise<Json> {
  const body = JSON.stringify({ assistant_id: 'greeter', input });
  say(`\n$ curl -H "X-Api-Key: $KEY" --json '${body}' ${url}/runs/wait`);
  const headers = { 'X-Api-Key': key, 'Content-Type': 'application/json' };
  const response = await fetch(`${url}/runs/wait`, { method: 'POST', headers, body });
  const text = await response.text();
  say(`  ${response.status} ${text.slice(0, 300)}`);
  expect(response.status === 200, 'the deployment responds through the gateway');
  return JSON.parse(text);
}

async function expectVersion(scene: DeploymentScene, url: string, version: string): Promise<void> {
  const { greeting } = await greet(scene, url, { name: 'Ada' });
  expect(greeting === `Hello, Ada: this is the ${version} version`, `the ${version} version greets`);
}

async function change(app: string, from: string, to: string): Promise<void> {
  const file = join(app, 'greeter.ts');
  const text = await readFile(file, 'utf8');
  expect(text.includes(from), `greeter.ts has ${from}`);
  await writeFile(file, text.replace(from, to));
  say(`\n# greeter.ts: ${from} becomes ${to}`);
}

async function createProfile(scene: DeploymentScene): Promise<void> {
  await ask(scene, 'POST', '/api/v1/workspaces/current/secrets', [{ key: 'DEMO_TOKEN', value: SECRET }]);
  const header = { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {DEMO_TOKEN}' };
  const config = {
    rules: [{ name: 'api', match_hosts: [HOST], headers: [header] }],
    access_control: { allow_list: [HOST] },
  };
  await ask(scene, 'POST', '/v1/proxy-profiles', { name: 'demo', proxy_config: config });
  say(`the proxy profile "demo" adds a credential for ${HOST}, and lets nothing else out`);
}

/** The agent calls an API, which gets the credential that the agent does not have. */
async function showProxy(scene: DeploymentScene, url: string, origin: LocalOrigin): Promise<void> {
  const { response } = await greet(scene, url, { name: 'Ada', url: `https://${HOST}:${origin.port}/v1` });
  expect(String(response).startsWith('200'), 'the agent reaches the API');
  const received = origin.seen.at(-1)?.headers.find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  say(`  the API received Authorization: ${(received ?? '(none)').slice(0, 14)}…`);
  expect(received === `Bearer ${SECRET}`, 'the API gets the credential');
  const other = await greet(scene, url, { name: 'Ada', url: 'https://other.localhost/' });
  expect(/^(?:403|failed)/.test(String(other['response'])), 'the agent reaches nothing else');
}

async function show(scene: DeploymentScene, origin: LocalOrigin): Promise<void> {
  const app = join(scene.scratch, 'greeter');
  await cp(join(root, 'config', 'deploy-demo'), app, { recursive: true });
  await writeFile(join(app, '.env'), 'GREETING=Hello\n');
  await createProfile(scene);
  const url = (await deploy(scene, [app, '--proxy-profile', 'demo'], 0)).stdout.trim();
  await expectVersion(scene, url, 'first');
  await showProxy(scene, url, origin);
  await change(app, `'first'`, `'second'`);
  await deploy(scene, [app], 0);
  await expectVersion(scene, url, 'second');
  await change(
    app,
    `const VERSION = 'second'`,
    `throw new Error('broken on purpose'); const VERSION = 'third'`,
  );
  await deploy(scene, [app], 1);
  say('\n# What was deployed before goes on:');
  await expectVersion(scene, url, 'second');
  await deploy(scene, ['rollback', 'greeter'], 0);
  await expectVersion(scene, url, 'first');
  await deploy(scene, ['revisions', 'greeter'], 0);
  const { stdout } = await deploy(scene, ['logs', 'greeter'], 0);
  expect(!stdout.includes(SECRET), 'the logs have no secret');
  await deploy(scene, ['delete', 'greeter', '--yes'], 0);
  await showEvents(scene, ['create_deployment', 'update_deployment', 'delete_deployment'], SECRET);
}

const interrupted = Promise.withResolvers<never>();
interrupted.promise.catch(() => undefined);
const interrupt = (): void => interrupted.reject(new Error('interrupted'));
process.on('SIGINT', interrupt).on('SIGTERM', interrupt);

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => say('Everything that the demo started has ended, and its files are removed.'));
  const origin = cleanup.use(await createEchoOrigin({ port: 0, echo: false }));
  say('$ KEY=$(sallyport platform init); sallyport platform');
  const scene = await startScene(cleanup, { originCaPem: origin.caPem });
  say(`ready at ${scene.url}`);
  const showing = show(scene, origin);
  showing.catch(() => undefined);
  await Promise.race([showing, interrupted.promise]);
  say('\nEverything was as expected.');
}

try {
  await main();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
process.exit();
