// A box host with real sidecars, an origin on loopback that they may reach, and a platform that is connected to it. What a test
// reads is the key that reached the origin.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { createLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { parsePortRange } from '../../src/box-host/attached-engine.ts';
import {
  type BoxHost,
  type BoxHostOptions,
  createBoxHost,
  type GivenEngine,
} from '../../src/box-host/box-host.ts';
import { createBoxHostRuntime } from '../../src/platform/runtime/box-host-runtime.ts';
import type { BoxPolicy, BoxSpec, Runtime, StartedBox } from '../../src/platform/runtime/contract.ts';
import { createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment, program } from '../support/spawned-process.ts';
import { createTestAuthority, type TestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const origins: TestAuthority = createTestAuthority();
export const HOST = 'api.localhost';
export const WORKSPACE = '8d0a8a0e-6d5e-4f7e-9f0b-3a3f6f1f9a01';
export const PROXY_TOKEN = 'a-proxy-token-of-enough-length';
/** What starts as `sallyport`. */
export const sallyport: readonly string[] = [process.execPath, program];

export type BoxHostScene = AsyncDisposable & {
  readonly directory: string;
  /** A config file for sidecars that reach the origin. */
  readonly sidecarConfigFile: string;
  readonly origin: RecordingOrigin;
  /** Of this process; undefined where a test starts its own. */
  readonly host: BoxHost | undefined;
  readonly runtime: Runtime;
  /** Sends one request through the box and returns the X-Key that arrived. */
  keyAt(started: Pick<StartedBox, 'proxyUrl' | 'caPem'>, token?: string): Promise<string | undefined>;
};

export type SceneOptions = {
  readonly attachedListen?: string;
  /** `process`: a box host of its own, as the platform starts it. */
  readonly as?: 'process';
  readonly createEngine?: (
    directory: string,
    given: GivenEngine,
  ) => ReturnType<NonNullable<BoxHostOptions['createEngine']>>;
};

export async function createBoxHostScene({
  attachedListen = '127.0.0.1:0',
  as,
  createEngine,
}: SceneOptions = {}): Promise<BoxHostScene> {
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority: origins, names: [HOST] } });
  const config = {
    upstream: { ca_file: await scratch.write('origins.pem', origins.certificatePem) },
    egress: { allow_private: ['loopback'] },
  };
  const sidecarConfigFile = await scratch.write('sidecars.json', config);
  const directory = join(scratch.path, 'box-host');
  await mkdir(directory, { mode: 0o700 });
  const listen = parsePortRange(attachedListen);
  if (typeof listen === 'string') throw new Error(listen);
  const host =
    as === 'process'
      ? undefined
      : await createBoxHost({
          directory,
          attachedListen: listen,
          log: createLog('silent', { write: () => undefined }),
          program: { command: sallyport, config, env: cleanEnvironment() },
          ...(createEngine && { createEngine: (given) => createEngine(directory, given) }),
        });
  const runtime = await createBoxHostRuntime({
    command: sallyport,
    directory,
    attachedListen,
    sidecarConfigFile,
  });
  return {
    directory,
    sidecarConfigFile,
    origin,
    host,
    runtime,
    async keyAt({ proxyUrl = '', caPem = '' }, token) {
      const authority = `${HOST}:${origin.port}`;
      await using client = await WireClient.connect(Number(new URL(proxyUrl).port));
      const fields = token === undefined ? [] : [`Proxy-Authorization: Bearer ${token}`];
      const { status } = await client.openTunnel(authority, fields);
      if (status !== 200) return `the response to CONNECT was ${status}`;
      await client.startTls({ ca: caPem, name: HOST });
      await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      const { head } = await client.readResponse();
      if (head.status !== 200) return `the response was ${head.status}`;
      return origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await host?.close();
      if (!host) await endProcess(directory);
      await origin.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Ends a box host that was started as a process, by the id that it reports. */
async function endProcess(directory: string): Promise<void> {
  const pid = await hostPid(directory);
  if (pid === undefined) return;
  process.kill(pid, 'SIGTERM');
  await ended(pid);
}

/** The process that listens on the socket; undefined: none does. */
export async function hostPid(directory: string): Promise<number | undefined> {
  const token = await readFile(join(directory, 'token'), 'utf8').catch(() => '');
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const headers = { Authorization: `Bearer ${token}` };
  const asked = request(
    { socketPath: join(directory, 'api.sock'), path: '/v1/status', headers, agent: false },
    (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve(JSON.parse(text).pid));
    },
  );
  asked.on('error', () => resolve(undefined)).end();
  return promise;
}

/** The sidecars of the box host that listens now. */
export async function sidecarPids(directory: string): Promise<readonly number[]> {
  const host = await hostPid(directory);
  const isSidecar = (name: string): boolean => {
    try {
      const parent = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1]?.split(' ')[1];
      const isOurs = readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(`${directory}/sidecars/`);
      return isOurs && Number(parent) === host;
    } catch {
      return false; // it has just ended
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isSidecar(name))
    .map(Number);
}

/** Resolves when no process has this id. One that is no child of ours has no event. */
export async function ended(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve));
}

export function isAlive(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

export function specOf(changes: Partial<BoxSpec> = {}): BoxSpec {
  return {
    id: randomUUID(),
    workspaceId: WORKSPACE,
    organizationId: WORKSPACE,
    name: 'a box',
    snapshotId: undefined,
    runtime: undefined,
    envVars: {},
    limits: {},
    proxyToken: new Secret(PROXY_TOKEN),
    ...changes,
  };
}

/** Gives `api.localhost` the value as X-Key; a value in braces is a workspace secret. */
export function policyOf(
  version: number,
  value: string,
  secrets: Readonly<Record<string, string>> = {},
): BoxPolicy {
  const type = value.startsWith('{') ? 'workspace_secret' : 'plaintext';
  return {
    version,
    document: { rules: [{ match_hosts: [HOST], headers: [{ name: 'X-Key', type, value }] }] },
    secrets: new Map(Object.entries(secrets).map(([name, text]) => [name, new Secret(text)])),
  };
}

/** Runs a command by the data plane at the other end of the connection. */
export async function execute(
  connection: Duplex,
  command: string,
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const headers = { Host: 'box', 'Content-Type': 'application/json' };
  const asked = request({ createConnection: () => connection, method: 'POST', path: '/execute', headers });
  asked.end(JSON.stringify({ command }));
  const [response] = await once(asked, 'response');
  let text = '';
  for await (const part of response) text += String(part);
  return { status: response.statusCode, body: JSON.parse(text) };
}
