// What one workload attempts against another one of another owner. Without isolation each attempt succeeds: what fails with it fails
// because of it.
import { chmod, copyFile, readFile, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../../src/box-host/command.ts';
import { findTree, readProcessTable } from '../../src/workload/limits/process-table.ts';
import { createOwnedDirectory } from '../../src/workload/owned-directory.ts';
import type { WorkloadIsolation } from '../../src/workload/workload.ts';
import { isMissing, openTestWorkloads, type Started, type TestWorkloads, titled } from './test-workloads.ts';

const PYTHON = '/usr/bin/python3';
const ATTEMPTS = join(import.meta.dirname, '..', 'box-host', 'bubblewrap', 'escapes', 'attempts.py');
const SECRET = 'a-secret-of-the-neighbour';

/** Of the attempts of a box against its host, those against a process with files, sockets and memory. */
const attempts: readonly string[] = [
  'a file of the host',
  'a file of the host through dots',
  'a file of the host through a link',
  'a file of the host through a process of it',
  'a unix socket of the host',
  'shared memory of the host by path',
  'shared memory of the host by key',
  'a signal to a process of the host',
  'the tracing of a process of the host',
  'the memory of a process of the host',
  'the environment of a process of the host',
  'a descriptor of a process of the host',
];
/** Without a network of its own a program reaches what listens for everybody. */
const inNetwork: readonly string[] = ['the loopback of the host', 'an abstract unix socket of the host'];

// As a deployment with a database: what it has, only it should reach.
const VICTIM = `
import ctypes, json, os, socket, sys, threading
directory, name, key, secret = sys.argv[1], sys.argv[2], int(sys.argv[3]), os.environ['SECRET'].encode()
open(directory + '/secret', 'wb').write(secret)
open('/dev/shm/' + name, 'wb').write(secret)
assert ctypes.CDLL(None).shmget(key, 4096, 0o1600) >= 0
def serve(server):
    server.listen()
    while True:
        client = server.accept()[0]
        client.send(b'reached')
        client.close()
servers = []
for family, address in ((socket.AF_UNIX, directory + '/.s.PGSQL.5432'), (socket.AF_UNIX, '\\0' + name), (socket.AF_INET, ('127.0.0.1', 0))):
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address)
    servers.append(server)
    threading.Thread(target=serve, args=(server,)).start()
print(json.dumps({'tcpPort': servers[-1].getsockname()[1]}), flush=True)
`;

type Outcome = { readonly name: string; readonly escaped: boolean };

async function startVictim({ workloads, scratch, start }: TestWorkloads) {
  const user = await workloads.userOf('victim');
  const directory = join(scratch, 'state');
  await createOwnedDirectory(directory, user);
  const [name, key] = [`sallyport-test-${process.pid}-${workloads.isolation}`, 0x6a11 + process.pid];
  const victim = await start({
    command: [PYTHON, '-c', VICTIM, directory, name, String(key)],
    env: { SECRET },
    mounts: [{ source: directory, target: directory, writable: true }],
    ...(user && { user }),
  });
  const { tcpPort } = JSON.parse(await victim.line('tcpPort'));
  const params = {
    ...{
      tcpPort,
      unixSocket: join(directory, '.s.PGSQL.5432'),
      abstractSocket: name,
      hostPid: pidOf(victim),
    },
    ...{ secret: SECRET, secretFile: join(directory, 'secret'), sharedMemory: name, sharedMemoryKey: key },
  };
  return { victim, params };
}

/** Of the program within what isolates it, on this machine. */
function pidOf({ workload: { pid } }: Started): number {
  const isProgram = (one: number): boolean => readFileSync(`/proc/${one}/cmdline`, 'utf8').startsWith(PYTHON);
  const found = findTree(readProcessTable(), pid).find(isProgram);
  if (found === undefined) throw new Error('the victim does not run');
  return found;
}

async function attack(opened: TestWorkloads, params: object): Promise<ReadonlyMap<string, boolean>> {
  const { workloads, scratch } = opened;
  const program = join(scratch, 'attempts.py');
  await copyFile(ATTEMPTS, program);
  await chmod(program, 0o644);
  const user = await workloads.userOf('attacker');
  const attacker = await opened.start({
    command: [PYTHON, program, JSON.stringify(params), ...attempts, ...inNetwork],
    mounts: [{ source: program, target: program }],
    ...(user && { user }),
  });
  await attacker.ended;
  const outcomes = attacker.lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Outcome);
  return new Map(outcomes.map(({ name, escaped }) => [name, escaped]));
}

const reached: Readonly<Record<WorkloadIsolation, readonly string[]>> = {
  bubblewrap: [],
  user: inNetwork,
  none: [...attempts, ...inNetwork],
};

describe.each(['bubblewrap', 'user', 'none'] as const)('with the isolation %s', (isolation) => {
  it.skipIf(isMissing(isolation))(
    titled('a workload reaches of its neighbour what it should', isolation),
    async () => {
      const opened = await openTestWorkloads(isolation);
      onTestFinished(() => opened[Symbol.asyncDispose]());
      const { victim, params } = await startVictim(opened);
      const outcomes = await attack(opened, params);
      expect([...outcomes.keys()]).toEqual([...attempts, ...inNetwork]);
      expect([...outcomes].filter(([, escaped]) => escaped).map(([name]) => name)).toEqual(
        reached[isolation],
      );
      // Nobody has ended it.
      expect(await victim.workload.stop(0)).toMatchObject({ reason: 'stopped' });
      // What it left for everybody to see is gone before its user is given to others.
      await opened.workloads.releaseUser('victim');
      const left = await runCommand(['ipcrm', '-M', String(params.sharedMemoryKey)]);
      const file = await readFile(`/dev/shm/${params.sharedMemory}`, 'utf8').catch(() => undefined);
      await rm(`/dev/shm/${params.sharedMemory}`, { force: true });
      const isLeft = isolation === 'none';
      expect([left.code === 0, file === SECRET]).toEqual([isLeft, isLeft]);
    },
  );
});
