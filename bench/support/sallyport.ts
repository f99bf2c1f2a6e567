// Sallyport as it is shipped: the bundle in the layout of the package, without sources, started by its launcher with the
// default configuration, its records written to a file.
import { once } from 'node:events';
import { readFileSync, statSync, truncateSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children } from './children.ts';
import { type Scene, PROXY_CORE, hosts, withOutput } from './scene.ts';

export type Sallyport = {
  readonly child: Child;
  readonly port: number;
  readonly adminUrl: string;
  readonly adminTokenFile: string;
  readonly caPem: string;
  /** Empties the file of records, and returns how large it was. */
  emptyRecords(): number;
};

/** A proxy_config. */
export type ProxyDocument = Readonly<Record<string, unknown>>;

export type SallyportStart = {
  readonly name: string;
  readonly packageDirectory: string;
  readonly listen: string;
  readonly stateDirectory: string;
  readonly recordsFile: string;
  readonly core?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Of Node, before the launcher. */
  readonly runtimeFlags?: readonly string[];
};

const START_DEADLINE_MS = 10_000;

/** One rule, one callback and one host in no_proxy. */
export function ordinaryDocument(scene: Scene): ProxyDocument {
  return {
    rules: [ruleFor(scene, hosts.rule)],
    callbacks: [{ name: 'bench', match_hosts: [hosts.callback], url: scene.callbackUrl, ttl_seconds: 3600 }],
    no_proxy: [hosts.tunnel],
  };
}

/** A rule that injects the credential below /v1/. */
export function ruleFor(scene: Scene, host: string, name = 'bench'): object {
  const header = { name: 'Authorization', type: 'opaque', value: scene.credential };
  return { name, match_hosts: [host], match_paths: ['/v1/*'], headers: [header] };
}

/** Starts the process, without waiting until it is ready. */
export function spawnSallyport(
  children: Children,
  start: SallyportStart,
  environment: Readonly<Record<string, string>>,
): Child {
  const launcher = join(start.packageDirectory, 'bin', 'sallyport.js');
  const args = ['proxy', '--listen', start.listen, '--state-dir', start.stateDirectory];
  return withOutput(start.recordsFile, (output) =>
    children.start(start.name, [process.execPath, ...(start.runtimeFlags ?? []), launcher, ...args], {
      output,
      ...(start.core === undefined ? {} : { core: start.core }),
      env: {
        HOME: start.stateDirectory,
        SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
        ...environment,
        ...start.env,
      },
    }),
  );
}

/** The files of the proxy for the scene: its rules, and the CA of the origin. */
export async function sceneEnvironment(
  scene: Scene,
  name: string,
  document: ProxyDocument = ordinaryDocument(scene),
): Promise<Record<string, string>> {
  const file = join(scene.directory, `${name}.json`);
  await writeFile(file, JSON.stringify(document), { mode: 0o600 });
  return { SALLYPORT_PROXY_CONFIG: file, SALLYPORT_UPSTREAM_CA: scene.caFile };
}

/** The log line that reports that the proxy is ready, with its addresses. */
export async function waitForReady(
  child: Child,
  recordsFile: string,
): Promise<{ proxy: string; ca: string; admin: string; admin_token: string }> {
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs && child.process.exitCode === null) {
    const lines = readFileSync(recordsFile, 'utf8').split('\n');
    const ready = lines.slice(0, -1).find((line) => line.includes('"msg":"ready"'));
    if (ready !== undefined) return JSON.parse(ready);
    await delay(1);
  }
  throw new Error(`${child.name} does not start`);
}

export type SallyportOptions = {
  readonly packageDirectory: string;
  /** Also the name of its folder; by default `sallyport`. */
  readonly name?: string;
  readonly document?: ProxyDocument;
  readonly env?: Readonly<Record<string, string>>;
  readonly profileDirectory?: string | undefined;
};

export async function startSallyport(
  children: Children,
  scene: Scene,
  options: SallyportOptions,
): Promise<Sallyport> {
  const { profileDirectory, packageDirectory, name = 'sallyport', env = {}, document } = options;
  const stateDirectory = join(scene.directory, `${name}-state`);
  await mkdir(stateDirectory, { mode: 0o700 });
  const recordsFile = join(scene.directory, `${name}.jsonl`);
  const profile = ['--cpu-prof', `--cpu-prof-dir=${profileDirectory}`];
  const child = spawnSallyport(
    children,
    {
      name,
      packageDirectory,
      listen: '127.0.0.1:0',
      stateDirectory,
      recordsFile,
      core: PROXY_CORE,
      env,
      ...(profileDirectory === undefined ? {} : { runtimeFlags: profile }),
    },
    await sceneEnvironment(scene, name, document),
  );
  const ready = await waitForReady(child, recordsFile);
  return {
    child,
    port: Number(new URL(ready.proxy).port),
    adminUrl: ready.admin,
    adminTokenFile: ready.admin_token,
    caPem: await readFile(ready.ca, 'utf8'),
    emptyRecords() {
      const { size } = statSync(recordsFile);
      truncateSync(recordsFile);
      return size;
    },
  };
}

/** Stops a proxy like an operator does, so that it writes its last records. */
export async function drain(child: Child): Promise<void> {
  const exited = once(child.process, 'exit');
  child.process.kill('SIGTERM');
  await exited;
}
