// `sallyport demo`: an agent process, an origin, a callback endpoint and the proxy between them. Prints what each of them
// saw, and fails if it is not what the README promises.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Issue } from '../base/schema.ts';
import { Secret } from '../base/secret.ts';
import { parseConfig } from '../sidecar/config.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../tls/certificate-authority.ts';
import { parseCommandLine } from './command/declaration.ts';
import { demoCommand } from './command/sidecar-commands.ts';
import { type LocalOrigin, createCallbackEndpoint, createEchoOrigin } from './echo-origin.ts';

// In two halves, so that a search finds it in a leak, but not in this source.
const TOKEN = ['sk-demo', '7Qm2xVb9LdE4'].join('-');

/** Exit code 0 if every check passes. */
export async function run(args: readonly string[]): Promise<number> {
  parseCommandLine(demoCommand, args);
  const scratch = await mkdtemp(join(tmpdir(), 'sallyport-demo-'));
  try {
    return await show(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function show(scratch: string): Promise<number> {
  await using origin = await createEchoOrigin({ port: 0, echo: false });
  await using callback = await createCallbackEndpoint({
    port: 0,
    headers: (host) => (host === 'minted.localhost' ? { 'X-Api-Key': `${TOKEN}-minted` } : undefined),
  });
  const ca = createCertificateAuthority();
  const caFile = join(scratch, 'ca.pem');
  await writeFile(caFile, ca.certificatePem);
  const sidecar = await startProxy(scratch, origin, ca);
  try {
    const applied = sidecar.applyProxyConfig(proxyConfig(callback.url), (name) =>
      name === 'DEMO_TOKEN' ? new Secret(TOKEN) : undefined,
    );
    if (!applied.ok) throw rejected(applied.issues);
    await sidecar.listen();
    const urls = [
      'api.localhost/v1/models',
      'minted.localhost/a',
      'minted.localhost/b',
      'failing.localhost/',
    ].map((url) => `https://${url.replace('/', `:${origin.port}/`)}`);
    const agent = await runAgent(urls, { proxyPort: sidecar.proxyPort, caFile });
    const checks = checksOf(agent, { urls, origin, calls: callback.calls });
    for (const [isTrue, line] of checks) process.stdout.write(`${isTrue ? 'ok  ' : 'FAIL'}  ${line}\n`);
    return checks.every(([isTrue]) => isTrue) ? 0 : 1;
  } finally {
    await sidecar.close();
  }
}

type Scene = { readonly urls: readonly string[]; readonly origin: LocalOrigin; readonly calls: number };

/** What each of them saw, and whether it is what the README promises. */
function checksOf({ responses, everything }: AgentRun, { urls, origin, calls }: Scene): [boolean, string][] {
  const [rule, first, second, failing] = responses;
  const received = (path: string, name: string): string => {
    const seen = origin.seen.find((one) => one.path === path);
    return seen?.headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? '(none)';
  };
  const authorization = received('/v1/models', 'authorization');
  const keys = [received('/a', 'x-api-key'), received('/b', 'x-api-key')];
  const leaks = everything.split(TOKEN).length - 1;
  return [
    [rule?.status === 200, `agent     GET ${urls[0]}   Authorization: (none)`],
    [
      authorization === `Bearer ${TOKEN}`,
      `origin    received Authorization: ${shown(authorization)}   by a rule`,
    ],
    [first?.status === 200, `agent     GET ${urls[1]}, then /b   no key of its own`],
    [
      keys.every((key) => key === `${TOKEN}-minted`),
      `origin    received X-Api-Key: ${shown(keys[1] ?? '')}   by a callback, twice`,
    ],
    [
      second?.status === 200 && calls === 2,
      'callback  was called once for both requests; the second used the cache',
    ],
    [
      failing?.status === 502 && failing.body.includes('callback resolution failed'),
      `agent     GET ${urls[3]}   ${failing?.status}: callback resolution failed`,
    ],
    [
      !origin.seen.some((one) => one.host.startsWith('failing.')),
      'origin    received nothing of that request: a failed callback fails closed',
    ],
    [leaks === 0, `secret    in the agent's environment and output: ${leaks} times`],
  ];
}

async function startProxy(scratch: string, origin: LocalOrigin, ca: CertificateAuthority): Promise<Sidecar> {
  const originCa = join(scratch, 'origin-ca.pem');
  await writeFile(originCa, origin.caPem);
  const config = parseConfig(
    { listen: '127.0.0.1:0', upstream: { ca_file: originCa }, log: { level: 'silent' } },
    {},
  );
  if (!config.ok) throw rejected(config.issues);
  return createSidecar(config.value, { ca });
}

function rejected(issues: readonly Issue[]): Error {
  return new Error(`the demo's own configuration was rejected: ${JSON.stringify(issues)}`);
}

function proxyConfig(callbackUrl: string): unknown {
  const authorization = { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {DEMO_TOKEN}' };
  return {
    rules: [
      { name: 'api', match_hosts: ['api.localhost'], match_paths: ['/v1/*'], headers: [authorization] },
    ],
    callbacks: [
      { match_hosts: ['minted.localhost', 'failing.localhost'], url: callbackUrl, ttl_seconds: 60 },
    ],
  };
}

type AgentRun = {
  readonly responses: readonly { readonly status: number; readonly body: string }[];
  /** Its output and its environment. */
  readonly everything: string;
};

/** Runs the agent: a process that has only the proxy's address and CA certificate. */
async function runAgent(
  urls: readonly string[],
  { proxyPort, caFile }: { proxyPort: number; caFile: string },
): Promise<AgentRun> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
    NODE_USE_ENV_PROXY: '1',
    NODE_EXTRA_CA_CERTS: caFile,
  };
  const child = spawn(process.execPath, ['--input-type=module', '-e', AGENT, ...urls], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = await text(child.stdout);
  const { responses, environment } = JSON.parse(output) as Pick<AgentRun, 'responses'> & {
    environment: string;
  };
  return { responses, everything: `${output}${environment}` };
}

const AGENT = `
import { readFileSync, existsSync } from 'node:fs';
const responses = [];
for (const url of process.argv.slice(1)) {
  const response = await fetch(url);
  responses.push({ status: response.status, body: JSON.stringify([...response.headers]) + await response.text() });
}
const environ = '/proc/self/environ';
const environment = existsSync(environ) ? readFileSync(environ, 'utf8') : JSON.stringify(process.env);
console.log(JSON.stringify({ responses, environment }));
`;

/** A secret as the demo prints it: enough to recognise, not enough to copy. */
function shown(value: string): string {
  return value.length <= 12 ? value : `${value.slice(0, 12)}…`;
}
