// One PostgreSQL server of each kind for all test files of a run, started on first use and stopped at the end of the run,
// even when that is a SIGKILL. Runs in the process of vitest itself; tests use it through `platform-database`.
import { spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PoolConfig } from 'pg';
import type { TestProject } from 'vitest/node';
import { type Client, connectOnce } from '../../src/platform/store/database.ts';
import { readAllMigrations } from '../../src/platform/migrations.ts';
import { migrate } from '../../src/platform/store/migrate.ts';
import { openPostgres, type PostgresServer } from '../../src/platform/store/embedded/postgres-server.ts';
import { debianPrograms } from './debian-postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A unix socket that reads a kind of server and writes a `TestServer` as one line of JSON. */
    readonly postgresDesk: string;
  }
}

export type ServerKind = 'embedded' | 'debian';
export type TestServer = {
  readonly connection: PoolConfig;
  readonly ownerConnection: PoolConfig;
  /** A database with the whole schema and no rows. */
  readonly template: string;
};
export type DeskResponse = TestServer | { readonly error: string };

const TEMPLATE = 'sallyport_template';
const silent = { info: () => undefined, warn: () => undefined };

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(await findPlace(), 'sallyport-pg-'));
  const servers = new Map<ServerKind, Promise<{ server: PostgresServer; response: TestServer }>>();
  removeAfterDeath(directory);
  const serve = async (socket: Socket): Promise<void> => {
    for await (const data of socket.setEncoding('utf8')) {
      const kind: ServerKind = String(data).trim() === 'debian' ? 'debian' : 'embedded';
      const started = servers.get(kind) ?? startServer(directory, kind);
      servers.set(kind, started);
      const response: DeskResponse = await started.then(
        (value) => value.response,
        (error: unknown) => ({ error: String(error) }),
      );
      socket.end(`${JSON.stringify(response)}\n`);
    }
  };
  const desk = createServer((socket) => {
    serve(socket).catch(() => socket.destroy());
  });
  const path = join(directory, 'desk');
  await new Promise<void>((resolve) => desk.listen(path, resolve));
  desk.unref();
  project.provide('postgresDesk', path);
  return async () => {
    desk.close();
    for (const started of servers.values())
      await started.then(({ server }) => server.close()).catch(() => undefined);
    await rm(directory, { recursive: true, force: true });
  };
}

const MEMORY = '/dev/shm';
/** More than a run takes: it drops its databases, and the write-ahead log of these servers is short. */
const MEMORY_BYTES = 2 * 1024 ** 3;
const TMPFS = 0x01021994;

/**
 * Of the databases, each of which is 480 files: memory where there is enough. To create files where others were just deleted
 * takes ext4 without a journal up to 0.2 s of system time for one database.
 */
async function findPlace(): Promise<string> {
  const found = await statfs(MEMORY).catch(() => undefined);
  const isFree = found?.type === TMPFS && found.bavail * found.bsize >= MEMORY_BYTES;
  return isFree ? MEMORY : tmpdir();
}

async function startServer(
  parent: string,
  kind: ServerKind,
): Promise<{ server: PostgresServer; response: TestServer }> {
  // PostgreSQL refuses to run as root: then the server runs as another user.
  await chmod(parent, 0o711);
  const directory = join(parent, kind);
  const programs = kind === 'debian' ? { programs: await debianPrograms() } : {};
  const server = await openPostgres({
    directory,
    log: silent,
    isDurable: false,
    maxConnections: 400,
    ...programs,
  });
  const { connection, ownerConnection } = server;
  await connectOnce(ownerConnection, async (client) => {
    await client.query(`create database ${TEMPLATE}`);
    await shortenLogins(client, [connection, ownerConnection]);
  });
  await migrate({ ...ownerConnection, database: TEMPLATE }, readAllMigrations());
  return { server, response: { connection, ownerConnection, template: TEMPLATE } };
}

/** A run logs in some thousand times, each time for 3 ms of hashing by default. */
async function shortenLogins(client: Client, logins: readonly PoolConfig[]): Promise<void> {
  // A server before version 16 has a fixed number.
  const { rowCount } = await client.query(`select from pg_settings where name = 'scram_iterations'`);
  if (rowCount === 0) return;
  await client.query('set scram_iterations = 1');
  for (const { user, password } of logins)
    await client.query(
      `alter role ${client.escapeIdentifier(String(user))} password ${client.escapeLiteral(String(password))}`,
    );
}

/** After a SIGKILL of this process the servers stop by themselves, and this shell removes their files. */
function removeAfterDeath(directory: string): void {
  const script = `
    read -r _
    tries=0
    while ls "$1"/*/cluster/postmaster.pid >/dev/null 2>&1 && [ $tries -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
    rm -rf "$1"
  `;
  const child = spawn('/bin/sh', ['-c', script, 'sallyport-test-postgres', directory], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
}
