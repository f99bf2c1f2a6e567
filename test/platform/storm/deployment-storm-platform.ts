// A platform with its runner as processes, on a database server that outlives them: what a storm of deployments kills and starts again,
// each time at the same addresses.
import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { ControlPlane } from '../../../src/cli/deploy/control-plane.ts';
import { Secret } from '../../../src/base/secret.ts';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import type { Connection } from '../../../src/platform/store/database.ts';
import { openPostgres } from '../../../src/platform/store/embedded/postgres-server.ts';
import { toDatabaseUrl } from '../../support/platform-process.ts';
import { createScratch } from '../../support/scratch.ts';
import { type LogRecord, runToEnd, SpawnedProcess } from '../../support/spawned-process.ts';
import { installProgram } from './deployment-storm-package.ts';

/** What is in flight in an agent server that is replaced ends within this time. */
export const DRAIN_MS = 6_000;

export type StormPlatform = AsyncDisposable & {
  readonly scratch: string;
  readonly data: string;
  readonly key: string;
  readonly plane: ControlPlane;
  /** Of the owner of its tables. */
  readonly owner: Connection;
  /** Of the platform that runs. */
  readonly pid: number;
  /** Of the runner that was ready last. */
  readonly runnerPid: number;
  gatewayOf(deploymentId: string): string;
  /** Starts the platform; its runner follows by itself. */
  start(): Promise<void>;
  /** Resolves with the moment at which a runner was ready of which this is not the process. */
  runnerAfter(pid: number): Promise<number>;
  /** SIGTERM, and its end. */
  end(): Promise<void>;
  /** Lines of the log that are warnings and errors. */
  readonly complaints: readonly string[];
};

/** `sidecarConfig`: of what deployments and builds reach. */
export async function createStormPlatform(sidecarConfig: object): Promise<StormPlatform> {
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await createScratch());
  // Under root the server and the deployments run as other users.
  await chmod(scratch.path, 0o711);
  const { launcher } = opened.use(await installProgram());
  const quiet = { info: () => undefined, warn: () => undefined };
  const server = await openPostgres({ directory: join(scratch.path, 'server'), log: quiet });
  opened.defer(() => server.close());
  const data = join(scratch.path, 'data');
  const key = mintKey('service').text;
  const [api, gateway] = [await freePort(), await freePort()];
  const env = {
    ...toEnvironment(process.env),
    ...(await writeSidecarConfig(scratch.path, sidecarConfig)),
    DATABASE_URL: toDatabaseUrl(server.connection),
    SALLYPORT_PLATFORM_DATABASE_OWNER_URL: toDatabaseUrl(server.ownerConnection),
    SALLYPORT_PLATFORM_DATA_DIR: data,
    SALLYPORT_PLATFORM_LISTEN: `127.0.0.1:${api}`,
    SALLYPORT_PLATFORM_GATEWAY_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN: `127.0.0.1:${gateway}`,
    SALLYPORT_PLATFORM_RUNNER_DRAIN_MS: String(DRAIN_MS),
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'none',
  };
  const init = { env: { ...env, SALLYPORT_BOOTSTRAP_API_KEY: key } };
  const { code, stderr } = await runToEnd(process.execPath, [launcher, 'platform', 'init'], init);
  if (code !== 0) throw new Error(`sallyport platform init: ${stderr}`);
  const url = new URL(`http://127.0.0.1:${api}`);
  const started: SpawnedProcess[] = [];
  opened.defer(async () => {
    for (const one of started) await one[Symbol.asyncDispose]();
  });
  const current = (): SpawnedProcess => {
    const last = started.at(-1);
    if (last === undefined) throw new Error('the platform was not started');
    return last;
  };
  const closing = opened.move();
  return {
    ...{ scratch: scratch.path, data, key, owner: server.ownerConnection },
    plane: new ControlPlane({ url, key: new Secret(key), workspace: undefined }),
    get pid() {
      return current().pid;
    },
    get runnerPid() {
      return Number(current().records.findLast(isRunnerReady)?.['pid'] ?? 0);
    },
    gatewayOf: (id) => `http://127.0.0.1:${gateway}/d/${id}`,
    async start() {
      const child = new SpawnedProcess(process.execPath, [launcher, 'platform'], { env });
      started.push(child);
      await child.record(({ msg }) => msg === 'ready');
    },
    async runnerAfter(pid) {
      const { records } = current();
      const before = records.findLastIndex((record) => isRunnerReady(record) && record['pid'] === pid);
      const ready = await current().record(
        (record) => isRunnerReady(record) && records.indexOf(record) > before,
      );
      return Date.parse(String(ready['time']));
    },
    async end() {
      const child = current();
      child.kill('SIGTERM');
      await child.exited;
    },
    get complaints() {
      return started.flatMap(({ records }) =>
        records
          .filter(({ level }) => level === 'error' || level === 'warn')
          .map((one) => JSON.stringify(one)),
      );
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function isRunnerReady({ msg }: LogRecord): boolean {
  return msg === 'the runner is ready';
}

async function writeSidecarConfig(scratch: string, config: object): Promise<Record<string, string>> {
  const file = join(scratch, 'sidecars.json');
  await writeFile(file, JSON.stringify(config));
  return { SALLYPORT_PLATFORM_RUNNER_SIDECAR_CONFIG: file };
}

function toEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}
