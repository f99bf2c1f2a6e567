// The two servers of the agent benchmark, each with a copy of the same deployment: Sallyport as it is shipped with its embedded
// database, and the public server, which keeps everything in memory.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Child, Children } from '../support/children.ts';
import { peersCache } from '../support/peer.ts';
import { findFreePort, withOutput } from '../support/scene.ts';

export type AgentServer = { readonly child: Child; readonly url: string; readonly directory: string };

/** The packages of the public server, which the graphs of both use. */
export type AgentPeer = {
  /** Their node_modules. */
  readonly packages: string;
  readonly versions: { readonly peer: string; readonly langgraph: string };
};

const root: string = join(import.meta.dirname, '..', '..');
const START_DEADLINE_MS = 60_000;
/** Runs at once of the public server, and of each worker of Sallyport: the default of both. */
const JOBS = 10;

/** What `npm run bench:peers -- langgraph` or `npm run interop -- agent install` has installed. */
export function findAgentPeer(): AgentPeer | undefined {
  const folders = [join(peersCache, 'langgraph'), join(root, 'interop', 'agent-server')];
  const packages = folders
    .map((folder) => join(folder, 'node_modules'))
    .find((folder) => existsSync(join(folder, '@langchain', 'langgraph-api')));
  if (packages === undefined) return undefined;
  const versionOf = (name: string): string =>
    String(JSON.parse(readFileSync(join(packages, '@langchain', name, 'package.json'), 'utf8')).version);
  return { packages, versions: { peer: versionOf('langgraph-api'), langgraph: versionOf('langgraph') } };
}

export async function startPeer(
  children: Children,
  { packages }: AgentPeer,
  directory: string,
): Promise<AgentServer> {
  const deployment = copyDeployment(directory, packages, {});
  const { graphs } = JSON.parse(readFileSync(join(deployment, 'langgraph.json'), 'utf8'));
  const port = await findFreePort();
  const dist = join(packages, '@langchain', 'langgraph-api', 'dist');
  // One process: the command of tsx would start another one.
  const tsx = pathToFileURL(createRequire(join(packages, 'any.js')).resolve('tsx')).href;
  const options = { port, nWorkers: JOBS, host: '127.0.0.1', cwd: deployment, graphs };
  const imports = ['--import', tsx, '--import', join(dist, 'preload.mjs')];
  const command = [...imports, join(dist, 'cli', 'entrypoint.mjs'), '0', JSON.stringify(options)];
  const { child } = await startServer(children, {
    ...{ name: 'langgraph-api', directory, command, cwd: deployment, ready: 'Server running at' },
    env: { NODE_ENV: 'development' },
  });
  return { child, directory, url: `http://127.0.0.1:${port}` };
}

export type SallyportStart = {
  readonly directory: string;
  readonly packageDirectory: string;
  /** Where the server and its workers write CPU profiles. */
  readonly profile?: string | undefined;
};

export async function startSallyport(
  children: Children,
  { packages }: AgentPeer,
  { directory, packageDirectory, profile }: SallyportStart,
): Promise<AgentServer> {
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const env = profile === undefined ? {} : { NODE_OPTIONS: flags.join(' ') };
  const deployment = copyDeployment(directory, packages, env);
  const launcher = join(packageDirectory, 'bin', 'sallyport.js');
  const config = ['--config', join(deployment, 'langgraph.json'), '--data-dir', join(directory, 'data')];
  const { child, line } = await startServer(children, {
    ...{ name: 'sallyport', directory, cwd: deployment, ready: '"msg":"ready"' },
    command: [...flags, launcher, 'agent-server', ...config, '--listen', '127.0.0.1:0'],
    env: { N_JOBS_PER_WORKER: String(JOBS) },
  });
  return { child, directory, url: String(JSON.parse(line).api) };
}

/** The workers do not see the packages of this checkout. */
function copyDeployment(directory: string, packages: string, env: Readonly<Record<string, string>>): string {
  const deployment = join(directory, 'deployment');
  mkdirSync(directory);
  // The database server runs as another user.
  chmodSync(directory, 0o711);
  cpSync(join(import.meta.dirname, 'deployment'), deployment, { recursive: true });
  symlinkSync(packages, join(deployment, 'node_modules'));
  const file = join(deployment, 'langgraph.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), env }));
  return deployment;
}

type ServerStart = {
  readonly name: string;
  readonly directory: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the log says when requests are served. */
  readonly ready: string;
};

async function startServer(
  children: Children,
  { name, directory, command, cwd, env, ready }: ServerStart,
): Promise<{ readonly child: Child; readonly line: string }> {
  const log = join(directory, 'log');
  const child = withOutput(log, (output) =>
    children.start(name, [process.execPath, ...command], {
      ...{ output, errors: output, cwd },
      env: { HOME: directory, ...env },
    }),
  );
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs && child.process.exitCode === null) {
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
    const line = lines.find((each) => each.includes(ready));
    if (line !== undefined) return { child, line };
    await delay(20);
  }
  throw new Error(`${name} does not start:\n${readFileSync(log, 'utf8').slice(-3000)}`);
}
