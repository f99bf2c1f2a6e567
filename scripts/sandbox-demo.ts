// `npm run sandbox:demo`: a platform from nothing, a box of the public JavaScript client in it, and what the box and an origin see:
// the origin gets the credential, and the box neither has it nor reaches anything else. The demo fails when it is not so.
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Sandbox, SandboxClient } from 'langsmith/sandbox';
import { createEchoOrigin, type LocalOrigin } from '../src/cli/echo-origin.ts';
import {
  ask,
  createFirstKey,
  type DemoPlatform,
  endBoxHost,
  endProcess,
  followPlatform,
  showEvents,
  spawnPlatform,
} from './demo-platform.ts';

/** In two halves, so that a search finds it in a leak, but not in this source. */
const SECRET = ['sk-demo', '9Wd4rTz1KcX7'].join('-');
const HOST = 'api.localhost';

type Ran = { readonly exit_code: number; readonly stdout: string; readonly stderr: string };
/** Runs a shell command where the box's programs run. */
type Run = (command: string) => Promise<Ran>;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function expect(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not as expected: ${what}`);
}

/** A secret as the demo prints it: enough to recognise, not enough to copy. */
function shown(value: string): string {
  return value.length <= 14 ? value : `${value.slice(0, 14)}…`;
}

/** The rule adds the credential for the origin, and the list lets the box reach that host alone. */
const proxyConfig = {
  rules: [
    {
      name: 'origin',
      match_hosts: [HOST],
      headers: [{ name: 'Authorization', type: 'workspace_secret' as const, value: 'Bearer {DEMO_TOKEN}' }],
    },
  ],
  access_control: { allow_list: [HOST] },
};

async function createBox(platform: DemoPlatform): Promise<Sandbox> {
  const client = new SandboxClient({ apiEndpoint: `${platform.url}/v2/sandboxes`, apiKey: platform.key });
  say(`\nawait client.createSandbox({ name: 'demo', proxyConfig })   # langsmith/sandbox`);
  const box = await client.createSandbox({ name: 'demo', proxyConfig });
  say(`${box.name} is ${box.status}${box.status_message ? `: ${box.status_message}` : ''}`);
  return box;
}

/** `curl` as it runs in the box. The variables of the box send it to the proxy, except for names below localhost. */
async function callOrigin(run: Run, origin: LocalOrigin): Promise<void> {
  const command = `curl -sS -m 20 --noproxy '' https://${HOST}:${origin.port}/v1/models`;
  say(`\nbox       $ ${command}`);
  const { exit_code: code, stdout, stderr } = await run(command);
  say(`          ${(stdout || stderr).trim().replaceAll(/\s+/g, ' ')}`);
  expect(code === 0, 'curl reaches the origin');
  const received = origin.seen.at(-1)?.headers.find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  say(`origin    received Authorization: ${shown(received ?? '(none)')}`);
  expect(received === `Bearer ${SECRET}`, 'the origin gets the credential');
}

/** Everything that a process of the box can read about its processes and in its files. */
const READ_ALL = `env
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
find /etc /home /tmp /var /run /root -xdev -type f ! -name '*.crt' ! -name '*.pem' -size -100k -exec cat {} + 2>/dev/null
true`;

async function searchBox(run: Run): Promise<void> {
  const { stdout, stderr } = await run(READ_ALL);
  const found = `${stdout}${stderr}`.split(SECRET).length - 1;
  say(
    `secret    in ${stdout.length} bytes of environments, command lines and files of the box: ${found} times`,
  );
  expect(found === 0 && stdout.includes('PATH='), 'the box does not have the secret');
}

/** What a box may try: the command must fail, or curl must get a refusal of the proxy. */
function attemptsOf(
  { url, data }: DemoPlatform,
  origin: LocalOrigin,
): readonly (readonly [string, string])[] {
  const direct = "curl -sS -f -m 5 --noproxy '*'";
  const proxied = "curl -sS -f -m 10 --noproxy ''";
  return [
    ['the origin, past the proxy', `${direct} -k https://127.0.0.1:${origin.port}/`],
    ['the API of the platform, past the proxy', `${direct} ${url}/ok`],
    ['the API of the platform, by the proxy', `${proxied} ${url}/ok`],
    ['the metadata address, past the proxy', `${direct} http://169.254.169.254/`],
    ['the metadata address, by the proxy', `${proxied} http://169.254.169.254/`],
    ['another host, by the proxy', `${proxied} https://example.com/`],
    ['another host, past the proxy', `${direct} http://192.0.2.1/`],
    ['IPv6', `${direct} -g 'http://[2001:db8::1]/'`],
    ['DNS', 'getent hosts example.com'],
    ['UDP', 'echo x > /dev/udp/192.0.2.1/53'],
    ['the files of the platform', `ls ${data}`],
    ['the processes of this machine', `test -e /proc/${process.pid}/environ`],
    ['the password file of this machine', 'cat /etc/shadow'],
  ];
}

async function tryEverything(run: Run, attempts: ReturnType<typeof attemptsOf>): Promise<void> {
  say('\nWhat else the box can reach:');
  for (const [name, command] of attempts) {
    const { exit_code: code, stdout, stderr } = await run(command);
    const [reason = ''] = `${stderr}${stdout}`.trim().split('\n').slice(-1);
    say(`  ${name.padEnd(40)} ${code === 0 ? 'REACHED' : 'no'}   ${reason.slice(0, 110)}`);
    expect(code !== 0, `the box does not reach ${name}`);
  }
}

type Records = { readonly records: readonly Readonly<Record<string, unknown>>[] };

async function showRecords(platform: DemoPlatform): Promise<void> {
  say('\nRecords of the box, newest first:');
  let records: Records['records'] = [];
  // They are delivered within a second or two.
  for (let tries = 0; tries < 100 && records.length === 0; tries += 1) {
    await delay(100);
    ({ records } = (await ask(platform, 'GET', '/v2/sandboxes/boxes/demo/records')) as Records);
  }
  for (const { time, outcome, status, method, authority, path, rule, reason } of records.slice(0, 8))
    say(`  ${[time, outcome, status, method, authority, path, rule ?? reason].filter(Boolean).join('  ')}`);
  expect(
    records.length > 0 && !JSON.stringify(records).includes(SECRET),
    'there are records without secrets',
  );
}

/** Without isolation: this machine plays the part of the box, with what the platform gives to who runs it. */
async function runOutside(platform: DemoPlatform, scratch: string): Promise<Run> {
  const { proxy_url: proxy, ca_pem: ca } = (await ask(
    platform,
    'GET',
    '/v2/sandboxes/boxes/demo',
  )) as Readonly<Record<string, string>>;
  const bundle = join(scratch, 'box-ca.pem');
  await writeFile(bundle, ca ?? '');
  const env = { PATH: process.env['PATH'] ?? '', HTTPS_PROXY: proxy, CURL_CA_BUNDLE: bundle };
  return (command) => {
    const { promise, resolve } = Promise.withResolvers<Ran>();
    execFile('/bin/sh', ['-c', command], { env }, (error, stdout, stderr) =>
      resolve({ exit_code: Number(error?.code ?? 0), stdout, stderr }),
    );
    return promise;
  };
}

async function show(platform: DemoPlatform, origin: LocalOrigin, scratch: string): Promise<void> {
  await ask(platform, 'POST', '/api/v1/workspaces/current/secrets', [{ key: 'DEMO_TOKEN', value: SECRET }]);
  say(`the workspace secret DEMO_TOKEN is stored: ${shown(SECRET)}`);
  const box = await createBox(platform);
  const isIsolated = Boolean(box.dataplane_url);
  const run: Run = isIsolated ? (command) => box.run(command) : await runOutside(platform, scratch);
  await callOrigin(run, origin);
  if (isIsolated) {
    await searchBox(run);
    await tryEverything(run, attemptsOf(platform, origin));
  } else {
    say(
      '\nNOT SHOWN: that the box does not have the secret and reaches nothing else. bubblewrap cannot isolate boxes on this',
    );
    say(
      'machine (sallyport box-host --check says why), so that curl ran outside of a box, with its proxy_url and ca_pem.',
    );
  }
  await showRecords(platform);
  await box.delete();
  await showEvents(platform, ['update_workspace_secrets', 'create_sandbox', 'delete_sandbox'], SECRET);
}

const interrupted = Promise.withResolvers<never>();
interrupted.promise.catch(() => undefined);
const interrupt = (): void => interrupted.reject(new Error('interrupted'));
process.on('SIGINT', interrupt).on('SIGTERM', interrupt);

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => say('Everything that the demo started has ended, and its files are removed.'));
  const scratch = await mkdtemp(join(tmpdir(), 'sallyport-sandbox-'));
  cleanup.defer(() => rm(scratch, { recursive: true, force: true }));
  // Under root the database runs as another user.
  await chmod(scratch, 0o755);
  const origin = cleanup.use(await createEchoOrigin({ port: 0, echo: false }));
  const caFile = join(scratch, 'origin-ca.pem');
  await writeFile(caFile, origin.caPem);
  const sidecarConfigFile = join(scratch, 'sidecars.json');
  // The origin of the demo is on loopback, which boxes never reach without this.
  const config = { upstream: { ca_file: caFile }, egress: { allow_private: ['loopback'] } };
  await writeFile(sidecarConfigFile, JSON.stringify(config));
  const data = join(scratch, 'data');
  say('$ KEY=$(sallyport platform init)');
  const key = await createFirstKey(data);
  say('$ sallyport platform');
  cleanup.defer(() => endBoxHost(data));
  const child = spawnPlatform(data, sidecarConfigFile);
  cleanup.defer(() => endProcess(child));
  const platform = await followPlatform(child, { key, data });
  say(`ready at ${platform.url}`);
  const showing = show(platform, origin, scratch);
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
