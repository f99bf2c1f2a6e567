// `sallyport demo`: an agent process, an origin, a callback endpoint and the proxy between them; prints what each of
// them saw, checks it, and fails if it is not what the README promises.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Secret } from '../base/secret.ts';
import { parseConfig } from '../sidecar/config.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../tls/certificate-authority.ts';
import { type LocalOrigin, createCallbackEndpoint, createEchoOrigin } from './echo-origin.ts';

// Written in two halves, so that a search of this process's own sources does not pass for a leak.
const TOKEN = ['sk-demo', '7Qm2xVb9LdE4'].join('-');

/** Exit code 0 if every line of the demo is as promised. */
export async function run(): Promise<number> {
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
    if (!applied.ok)
      throw new Error(`the demo's own configuration was refused: ${JSON.stringify(applied.issues)}`);
    await sidecar.listen();
    const at = (host: string, path: string): string => `https://${host}:${origin.port}${path}`;
    const urls = {
      rule: at('api.localhost', '/v1/models'),
      first: at('minted.localhost', '/a'),
      second: at('minted.localhost', '/b'),
      failing: at('failing.localhost', '/'),
    };
    const agent = await runAgent(Object.values(urls), { proxyPort: sidecar.proxyPort, caFile });
    const [rule, first, second, failing] = agent.responses;
    const received = (path: string, name: string): string =>
      origin.seen
        .find((one) => one.path === path)
        ?.headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? '(none)';
    const lines: [isTrue: boolean, line: string][] = [
      [rule?.status === 200, `agent     GET ${urls.rule}   Authorization: (none)`],
      [
        received('/v1/models', 'authorization') === `Bearer ${TOKEN}`,
        `origin    received Authorization: ${shown(received('/v1/models', 'authorization'))}   by a rule`,
      ],
      [first?.status === 200, `agent     GET ${urls.first}, then /b   no key of its own`],
      [
        received('/a', 'x-api-key') === `${TOKEN}-minted` &&
          received('/b', 'x-api-key') === `${TOKEN}-minted`,
        `origin    received X-Api-Key: ${shown(received('/b', 'x-api-key'))}   by a callback, twice`,
      ],
      [
        second?.status === 200 && callback.calls === 2,
        `callback  was asked once for both; the second came from the cache`,
      ],
      [
        failing?.status === 502 && failing.body.includes('callback resolution failed'),
        `agent     GET ${urls.failing}   ${failing?.status}: callback resolution failed`,
      ],
      [
        !origin.seen.some((one) => one.host.startsWith('failing.')),
        `origin    received nothing of that: a failed callback fails closed`,
      ],
      [
        !agent.everything.includes(TOKEN),
        `secret    in the agent's environment and output: ${count(agent.everything, TOKEN)} times`,
      ],
    ];
    for (const [isTrue, line] of lines) process.stdout.write(`${isTrue ? 'ok  ' : 'FAIL'}  ${line}\n`);
    return lines.every(([isTrue]) => isTrue) ? 0 : 1;
  } finally {
    await sidecar.close();
  }
}

async function startProxy(scratch: string, origin: LocalOrigin, ca: CertificateAuthority): Promise<Sidecar> {
  const originCa = join(scratch, 'origin-ca.pem');
  await writeFile(originCa, origin.caPem);
  const config = parseConfig(
    { listen: '127.0.0.1:0', upstream: { ca_file: originCa }, log: { level: 'silent' } },
    {},
  );
  if (!config.ok)
    throw new Error(`the demo's own configuration was refused: ${JSON.stringify(config.issues)}`);
  return createSidecar(config.value, { ca });
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

type Response = { readonly status: number; readonly body: string };

/** The agent: a process of its own with nothing but the proxy's address and its CA certificate. */
async function runAgent(
  urls: readonly string[],
  { proxyPort, caFile }: { proxyPort: number; caFile: string },
): Promise<{ responses: readonly Response[]; everything: string }> {
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
  const { responses, environment } = JSON.parse(output) as { responses: Response[]; environment: string };
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

function count(haystack: string, needle: string): number {
  return haystack.split(needle).length - 1;
}
