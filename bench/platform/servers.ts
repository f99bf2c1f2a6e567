// The two servers of the platform benchmark on one PostgreSQL: the platform as it is shipped, with its embedded database server,
// and a bare Fastify. Each can also be started a second time behind a relay that counts what it asks of the database.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, connectOnce } from '../../src/platform/store/database.ts';
import { readPasswords } from '../../src/platform/store/embedded/data-directory.ts';
import { findRunningServer } from '../../src/platform/store/embedded/postgres-server.ts';
import { OWNER } from '../../src/platform/store/roles.ts';
import { type Child, type Children, treeOf } from '../support/children.ts';
import { findPackage, peersCache, peersFolder } from '../support/peer.ts';
import { LOAD_CORE, PROXY_CORE, findFreePort, withOutput } from '../support/scene.ts';
import { connectTo } from '../support/connection.ts';

export type ApiServer = { readonly child: Child; readonly port: number };

export type Installation = {
  /** With its data directory. */
  readonly directory: string;
  readonly packageDirectory: string;
  readonly key: string;
  readonly workspaceId: string;
};

/** Of Fastify: one for each client. */
const BARE_CONNECTIONS = 16;
/** Of the platform, which needs no more than by default: the embedded server allows as many to both together. */
const PLATFORM_CONNECTIONS = 40;
/** Nothing is measured of them. */
const WITHOUT_BOXES = { SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'attached' } as const;
const START_DEADLINE_MS = 30_000;

/** Creates the database, the first organization, its workspace and its key. */
export function initialize(directory: string, packageDirectory: string): Installation {
  const created = runPlatform(directory, packageDirectory, ['platform', 'init']);
  return { directory, packageDirectory, ...created };
}

/** A second organization of the running platform, with a workspace and a key. */
export function addOrganization(installation: Installation): Installation {
  const { directory, packageDirectory } = installation;
  const command = ['platform', 'organization', 'create', '--name', 'Other'];
  return { ...installation, ...runPlatform(directory, packageDirectory, command) };
}

/** A command that prints a key, and its workspace to standard error. */
function runPlatform(directory: string, packageDirectory: string, command: readonly string[]) {
  const args = [launcherOf(packageDirectory), ...command, '--data-dir', join(directory, 'data')];
  const env = { PATH: process.env['PATH'], HOME: directory, ...WITHOUT_BOXES };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`sallyport ${command.join(' ')} failed:\n${stderr}`);
  const [, workspaceId = ''] = /^workspace +(\S+)$/m.exec(stderr) ?? [];
  return { key: stdout.trim(), workspaceId };
}

export function startPlatform(
  children: Children,
  installation: Installation,
  profileDirectory?: string,
): Promise<ApiServer> {
  const profile = ['--cpu-prof', `--cpu-prof-dir=${profileDirectory}`];
  return spawnPlatform(children, installation, {
    name: 'sallyport',
    data: 'data',
    flags: profileDirectory === undefined ? [] : profile,
    env: {},
  });
}

/** A second process of the same platform, whose database connections all go through the socket in `host`. */
export async function startCountedPlatform(
  children: Children,
  installation: Installation,
  host: string,
): Promise<ApiServer> {
  const [runtime, owner] = [await databaseOf(installation), await ownerOf(installation)];
  const toUrl = ({ database, user, password }: Connection): string => {
    const parameters = { host, user: String(user), password: String(password) };
    return `postgresql:///${database}?${new URLSearchParams(parameters)}`;
  };
  return spawnPlatform(children, installation, {
    name: 'sallyport-counted',
    data: 'data-counted',
    flags: [],
    env: {
      DATABASE_URL: toUrl(runtime),
      SALLYPORT_PLATFORM_DATABASE_OWNER_URL: toUrl(owner),
      SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE: join(installation.directory, 'data', 'vault-master.key'),
    },
  });
}

type PlatformStart = {
  readonly name: string;
  readonly data: string;
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

async function spawnPlatform(
  children: Children,
  { directory, packageDirectory }: Installation,
  { name, data, flags, env }: PlatformStart,
): Promise<ApiServer> {
  const log = join(directory, `${name}.jsonl`);
  // That of an earlier process says that it is ready.
  rmSync(log, { force: true });
  const args = ['platform', '--data-dir', join(directory, data), '--listen', '127.0.0.1:0'];
  const child = withOutput(log, (output) =>
    children.start(name, [process.execPath, ...flags, launcherOf(packageDirectory), ...args], {
      core: PROXY_CORE,
      output,
      errors: output,
      env: {
        HOME: directory,
        SALLYPORT_PLATFORM_DATABASE_MAX_CONNECTIONS: String(PLATFORM_CONNECTIONS),
        // One key sends all requests: its rate is not what is measured.
        SALLYPORT_PLATFORM_LIMITS_KEY_REQUESTS_PER_S: '1000000',
        SALLYPORT_PLATFORM_LIMITS_ORGANIZATION_REQUESTS_PER_S: '1000000',
        ...WITHOUT_BOXES,
        ...env,
      },
    }),
  );
  const ready = await waitFor(child, log, () => {
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
    const line = lines.find((each) => each.includes('"msg":"ready"'));
    return line === undefined ? undefined : (JSON.parse(line) as { readonly api: string });
  });
  return { child, port: Number(new URL(ready.api).port) };
}

/** A package that `npm run bench:peers -- fastify` installs. */
export function findFastify(): { readonly fastify: string; readonly pg: string } | undefined {
  const [fastify, pg] = [findPackage('fastify'), findPackage('pg')];
  return fastify && pg && { fastify: fastify.version, pg: pg.version };
}

/** `host` is the directory of a socket in place of the server's own. */
export async function startBareServer(
  children: Children,
  installation: Installation,
  host?: string,
): Promise<ApiServer> {
  const connection = { ...(await databaseOf(installation)), ...(host === undefined ? {} : { host }) };
  const port = await findFreePort();
  const { workspaceId } = installation;
  const options = { port, connection, workspaceId, maxConnections: BARE_CONNECTIONS, modules: peersCache };
  const program = join(peersFolder, 'programs', 'fastify.mjs');
  const log = join(installation.directory, 'fastify.log');
  const child = withOutput(log, (output) =>
    children.start('fastify', [process.execPath, program, JSON.stringify(options)], {
      core: PROXY_CORE,
      output,
      errors: output,
    }),
  );
  const socket = await waitFor(child, log, () => connectTo(port).catch(() => undefined));
  socket.destroy();
  return { child, port };
}

/** The embedded server, as the role that the platform has. */
export async function databaseOf({ directory }: Pick<Installation, 'directory'>): Promise<Connection> {
  const found = await findRunningServer(join(directory, 'data', 'database'));
  if (typeof found === 'string') throw new Error(`the database server is ${found}`);
  return found;
}

/** The same server, as the owner of the tables. */
export async function ownerOf(installation: Pick<Installation, 'directory'>): Promise<Connection> {
  const { owner } = await readPasswords(join(installation.directory, 'data', 'database'), true);
  return { ...(await databaseOf(installation)), user: OWNER, password: owner };
}

/** Moves the processes of PostgreSQL to the core of the load; returns the first of them. */
export function moveDatabase(children: Children, { directory }: Installation): number {
  const file = join(directory, 'data', 'database', 'cluster', 'postmaster.pid');
  const [line = ''] = readFileSync(file, 'utf8').split('\n', 1);
  const pid = Number(line);
  // Connections that are opened later are children of the first process, and inherit its core.
  if (children.isPinned)
    for (const each of treeOf(pid)) spawnSync('taskset', ['-cp', String(LOAD_CORE), String(each)]);
  return pid;
}

async function waitFor<T>(
  child: Child,
  output: string,
  find: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs && child.process.exitCode === null) {
    const found = await find();
    if (found !== undefined) return found;
    await delay(10);
  }
  throw new Error(`${child.name} does not start:\n${readFileSync(output, 'utf8')}`);
}

function launcherOf(packageDirectory: string): string {
  const launcher = join(packageDirectory, 'bin', 'sallyport.js');
  if (!existsSync(launcher)) throw new Error(`${packageDirectory} is not a built package`);
  return launcher;
}

/** Of PostgreSQL. */
export async function versionOf(installation: Installation): Promise<string> {
  const version = await connectOnce(await databaseOf(installation), (client) =>
    client.query<{ readonly server_version: string }>('show server_version'),
  );
  return version.rows[0]?.server_version ?? 'unknown';
}
