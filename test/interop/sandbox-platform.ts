// A platform process with isolated boxes on fixed ports, and an origin that its boxes reach: what the public clients are run against.
// It can be killed and started again, and its database can be held.
import { readdirSync, readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { ended, hostPid } from '../box-host/box-host-scene.ts';
import { initPlatform, type PlatformProcess, startPlatform } from '../support/platform-process.ts';
import { createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { createTestAuthority } from '../support/test-authority.ts';

export type SandboxPlatform = AsyncDisposable & {
  readonly url: string;
  readonly key: string;
  /** Of somebody who may read. */
  readonly viewerKey: string;
  readonly origin: RecordingOrigin;
  /** Without a word, as a crash; boxes go on. Resolves when it is ready again. */
  restart(): Promise<void>;
  holdDatabase(): void;
  releaseDatabase(): void;
};

export const ORIGIN_HOST = 'api.localhost';
export const SECRET_VALUE = 'interop-value';

export async function createSandboxPlatform(): Promise<SandboxPlatform> {
  const scratch = await createScratch();
  // Under root the database runs as another user.
  await chmod(scratch.path, 0o755);
  const authority = createTestAuthority();
  const origin = await createOrigin({ tls: { authority, names: [ORIGIN_HOST] } });
  const sidecarConfig = {
    upstream: { ca_file: await scratch.write('origins.pem', authority.certificatePem) },
    egress: { allow_private: ['loopback'] },
  };
  const [port, gatewayPort] = await Promise.all([findPort(), findPort()]);
  const dataDirectory = join(scratch.path, 'data');
  const options = {
    dataDirectory,
    env: {
      SALLYPORT_PLATFORM_LISTEN: `127.0.0.1:${port}`,
      SALLYPORT_PLATFORM_GATEWAY_LISTEN: `127.0.0.1:${gatewayPort}`,
      SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'bubblewrap',
      SALLYPORT_PLATFORM_SANDBOXES_SIDECAR_CONFIG: await scratch.write('sidecars.json', sidecarConfig),
      SALLYPORT_PLATFORM_SANDBOXES_MAX_BOXES: '4',
    },
  };
  const key = mintKey('service').text;
  await initPlatform(options, key);
  let platform: PlatformProcess = startPlatform(options);
  await platform.ready;
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string, body: unknown): Promise<Readonly<Record<string, string>>> => {
    const response = await fetch(`${url}${path}`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  await ask('/api/v1/workspaces/current/secrets', [{ key: 'INTEROP', value: SECRET_VALUE }]);
  const viewer = await ask('/api/v1/api-key', { description: 'viewer', read_only: true });
  const signalDatabase = (signal: NodeJS.Signals): void => {
    for (const pid of descendantsOf(platform.process.pid, 'postgres')) process.kill(pid, signal);
  };
  return {
    ...{ url, key, origin },
    viewerKey: viewer['key'] ?? '',
    async restart() {
      platform.process.kill('SIGKILL');
      await platform.process.exited;
      platform = startPlatform(options);
      await platform.ready;
    },
    holdDatabase: () => signalDatabase('SIGSTOP'),
    releaseDatabase: () => signalDatabase('SIGCONT'),
    async [Symbol.asyncDispose]() {
      // Its database ends with it.
      platform.process.kill('SIGTERM');
      await platform.process.exited;
      const host = await hostPid(join(dataDirectory, 'box-host'));
      if (host !== undefined) {
        process.kill(host, 'SIGTERM');
        await ended(host);
      }
      await origin.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** One that is free: clients connect again to the address that they know. */
async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Those of a process whose program has this name. */
function descendantsOf(pid: number, program: string): readonly number[] {
  const parents = new Map<number, number>();
  const programs = new Map<number, string>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      programs.set(Number(name), stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')));
    } catch {
      // It has just ended.
    }
  }
  const descends = (one: number): boolean => {
    const parent = parents.get(one);
    return parent !== undefined && parent > 1 && (parent === pid || descends(parent));
  };
  return [...parents.keys()].filter((one) => descends(one) && programs.get(one) === program);
}
