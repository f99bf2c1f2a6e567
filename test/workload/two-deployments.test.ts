// Two deployments on one machine: twelve attempts of the code of one to read what is the other's, its files, environment, sockets and database. Each
// succeeds without isolation, so what fails with it fails because of it.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { sealTree, shareTree } from '../../src/platform/builder/output/sealed-tree.ts';
import { openDatabaseBridge } from '../../src/platform/runner/database-bridge/bridge.ts';
import { createConnectionBudget } from '../../src/platform/runner/database-bridge/connection-budget.ts';
import { createVerifier } from '../../src/platform/runner/databases/scram-verifier.ts';
import {
  createServerDatabase,
  dropServerDatabase,
  namesOf,
} from '../../src/platform/runner/databases/server-databases.ts';
import { pinSocket } from '../../src/platform/runner/instances/pinned-socket.ts';
import { findTree, readProcessTable } from '../../src/workload/limits/process-table.ts';
import { createOwnedDirectory } from '../../src/workload/owned-directory.ts';
import type { WorkloadIsolation } from '../../src/workload/workload.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import { isMissing, openTestWorkloads, type Started, type TestWorkloads, titled } from './test-workloads.ts';

const PYTHON = '/usr/bin/python3';
const SECRET = 'a-secret-of-the-other-deployment';
const PASSWORD = 'the-password-of-its-role';

const attempts = [
  'a file of the host',
  'a file of the host through a link',
  'a file of the host through a process of it',
  'a file of the build',
  'the environment of a process of the host',
  'the memory of a process of the host',
  'a descriptor of a process of the host',
  'shared memory of the host by path',
  'a unix socket of the host',
  'the socket that the gateway uses',
  'the database by the socket of its deployment',
  'the database at its server',
] as const;

/** Has what an agent server has. */
const VICTIM = `
import os, socket, sys, threading
state, name, secret = sys.argv[1], sys.argv[2], os.environ['SECRET'].encode()
open(state + '/secret', 'wb').write(secret)
open('/dev/shm/' + name, 'wb').write(secret)
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(state + '/api.sock')
server.listen()
def serve():
    while True:
        client = server.accept()[0]
        client.send(b'reached')
        client.close()
threading.Thread(target=serve).start()
print('ready', flush=True)
`;

type Role = Awaited<ReturnType<typeof createRole>>;

/** The database of a deployment on the server of the platform, with the secret in it. */
async function createRole({ ownerConnection, connection }: TestDatabase) {
  const names = namesOf(randomUUID());
  const given = { verifier: await createVerifier(new Secret(PASSWORD)), maxConnections: 10 };
  await createServerDatabase(ownerConnection, names, given);
  const client = new Client({
    ...connection,
    database: names.database,
    user: names.role,
    password: PASSWORD,
  });
  await client.connect();
  await client.query(`create table secrets as select '${SECRET}' as secret`);
  await client.end();
  return { ...names, server: { host: String(connection.host), port: connection.port ?? 5432 } };
}

async function startVictim({ workloads, scratch, start }: TestWorkloads, role: Role) {
  const user = await workloads.userOf('victim');
  const [state, build, pinned, bridge] = ['state', 'build', 'pinned', 'db'].map((name) =>
    join(scratch, name),
  ) as [string, string, string, string];
  await createOwnedDirectory(state, user);
  await mkdir(pinned, { mode: 0o700 });
  await mkdir(build, { mode: 0o700 });
  await writeFile(join(build, 'source'), SECRET);
  await sealTree(build, undefined);
  await shareTree(build, user);
  const opened = await openDatabaseBridge({
    ...{
      directory: bridge,
      groupId: user?.gid,
      server: role.server,
      database: role.database,
      user: role.role,
    },
    ...{ connections: createConnectionBudget(10, 10), log: { warn: () => undefined } },
  });
  const sharedMemory = `sallyport-two-${process.pid}-${workloads.isolation}`;
  const victim = await start({
    command: [PYTHON, '-c', VICTIM, state, sharedMemory],
    env: { SECRET },
    mounts: [
      ...[build, bridge].map((source) => ({ source, target: source })),
      { source: state, target: state, writable: true },
    ],
    ...(user && { user }),
  });
  await victim.line('ready');
  await pinSocket(join(state, 'api.sock'), join(pinned, 'api.sock'), AbortSignal.timeout(10_000));
  const params = {
    ...{ secret: SECRET, secretFile: join(state, 'secret'), buildFile: join(build, 'source') },
    ...{ hostPid: pidOf(victim), sharedMemory },
    ...{ unixSocket: join(state, 'api.sock'), pinnedSocket: join(pinned, 'api.sock') },
    ...{ role: role.role, database: role.database, password: PASSWORD },
    bridgeSocket: join(bridge, '.s.PGSQL.5432'),
    serverSocket: join(role.server.host, `.s.PGSQL.${role.server.port}`),
  };
  return {
    params,
    async end() {
      await victim.workload.stop(0);
      await opened.close();
      await rm(`/dev/shm/${sharedMemory}`, { force: true });
    },
  };
}

/** Of the program within what isolates it, on this machine. */
function pidOf({ workload: { pid } }: Started): number {
  const isProgram = (one: number): boolean => readFileSync(`/proc/${one}/cmdline`, 'utf8').startsWith(PYTHON);
  const found = findTree(readProcessTable(), pid).find(isProgram);
  if (found === undefined) throw new Error('the program does not run');
  return found;
}

type Outcome = { readonly name: string; readonly escaped: boolean; readonly detail: string };

async function attack(
  { workloads, scratch, start }: TestWorkloads,
  params: object,
): Promise<readonly Outcome[]> {
  const own = join(scratch, 'attacker');
  await mkdir(own, { mode: 0o755 });
  await copyFile(
    join(import.meta.dirname, '../box-host/bubblewrap/escapes/attempts.py'),
    join(own, 'attempts.py'),
  );
  await copyFile(join(import.meta.dirname, 'database-attempts.py'), join(own, 'main.py'));
  const user = await workloads.userOf('attacker');
  await sealTree(own, undefined);
  await shareTree(own, user);
  const attacker = await start({
    command: [PYTHON, '-B', join(own, 'main.py'), JSON.stringify(params), ...attempts],
    mounts: [{ source: own, target: own }],
    ...(user && { user }),
  });
  await attacker.ended;
  return attacker.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Outcome);
}

/** The kernel refuses it, or there is nothing; whatever else is wrong would be an error of the test. */
const notReached = {
  escaped: false,
  detail: expect.stringMatching(/^(?:PermissionError|FileNotFoundError|ProcessLookupError|OSError): /),
};

const isolations: readonly WorkloadIsolation[] = ['none', 'bubblewrap', 'user'];

describe('what one deployment attempts against another', { tags: ['long'] }, () => {
  const outcomes = new Map<WorkloadIsolation, readonly Outcome[]>();
  let database: TestDatabase;
  let role: Role;

  beforeAll(async () => {
    database = await createTestDatabase({ isMigrated: false });
    role = await createRole(database);
    for (const isolation of isolations.filter((one) => !isMissing(one))) {
      await using opened = await openTestWorkloads(isolation);
      const victim = await startVictim(opened, role);
      outcomes.set(isolation, await attack(opened, victim.params));
      await victim.end();
    }
  }, 240_000);

  afterAll(async () => {
    if (role !== undefined) await dropServerDatabase(database.ownerConnection, role);
    await database?.[Symbol.asyncDispose]();
  });

  const outcomeOf = (isolation: WorkloadIsolation, name: string) =>
    outcomes.get(isolation)?.find((one) => one.name === name);

  it('has twelve attempts', () => {
    expect(new Set(attempts).size).toBe(12);
    for (const [, found] of outcomes) expect(found.map(({ name }) => name)).toEqual(attempts);
  });

  describe.each(attempts)('%s', (name) => {
    it('is reached without isolation', () => {
      expect(outcomeOf('none', name)).toMatchObject({ escaped: true });
    });

    it.skipIf(isMissing('bubblewrap'))(titled('is not reached with bubblewrap', 'bubblewrap'), () => {
      expect(outcomeOf('bubblewrap', name)).toMatchObject(notReached);
    });

    it.skipIf(isMissing('user'))(titled('is not reached as another user', 'user'), () => {
      expect(outcomeOf('user', name)).toMatchObject(notReached);
    });
  });
});
