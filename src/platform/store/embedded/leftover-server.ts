// Cleans up after a platform that crashed: a server that still runs, or a postmaster.pid of a process that is gone.
// The caller holds the lock of the directory, so no other platform uses a server that is found here.
import { readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connectOnce, type Connection } from '../database.ts';
import { isNotReady } from '../database-error.ts';
import { runProgram } from './account.ts';
import type { DataDirectory } from './data-directory.ts';

const STOP_TIMEOUT_MS = 60_000;
const RETRY_MS = 20;
/** Above every process id that can exist. */
const UNUSED_PID = '2147483647';

/** Once it resolves, no server runs on the directory. */
export async function stopLeftoverServer(directory: DataDirectory, login: Connection): Promise<void> {
  const { path, cluster } = directory;
  const deadlineMs = performance.now() + STOP_TIMEOUT_MS;
  for (;;) {
    const pid = await readServerPid(cluster);
    if (pid === undefined) return;
    const isOurs = await isServerOf(cluster, pid);
    const isResponding = await acceptsOwner(directory, login);
    if (isResponding && !isOurs)
      throw new Error(`A database server runs on ${path} that this process cannot see. Stop it first`);
    if (!isResponding && !isOurs) return replacePid(directory);
    // A server that is already shutting down ignores the signal.
    if (isResponding) process.kill(pid, 'SIGINT');
    if (performance.now() > deadlineMs)
      throw new Error(`The database server ${pid} of ${path} does not stop. Stop it first`);
    await setTimeout(RETRY_MS);
  }
}

async function readServerPid(cluster: string): Promise<number | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : 0;
}

/** A process id alone proves nothing, since ids are reused. The working directory of a server is its cluster. */
async function isServerOf(cluster: string, pid: number): Promise<boolean> {
  if (process.platform === 'linux')
    return (await readlink(`/proc/${pid}/cwd`).catch(() => undefined)) === (await realpath(cluster));
  const options = { account: undefined };
  const { stdout } = await runProgram('/bin/ps', ['-p', String(pid), '-o', 'args='], options);
  return stdout.includes(cluster);
}

/** Whether a server lets the owner in. If so, it runs, whatever the process ids say. */
async function acceptsOwner({ path, cluster }: DataDirectory, login: Connection): Promise<boolean> {
  try {
    return await connectOnce(login, async (client) => {
      const { rows } = await client.query('show data_directory');
      return (await realpath(cluster)) === rows[0]?.data_directory;
    });
  } catch (cause) {
    if (isNotReady(cause)) return false;
    throw new Error(`A database server on ${path} rejects our connection. Stop it first`, { cause });
  }
}

// A server refuses to start while the process that the file names is alive, even if that is another program. The rest of
// the file stays: the server uses it to detect children of a dead server that still write, and then refuses too. The
// account writes the file, since the directory is its own.
async function replacePid({ path, cluster, account }: DataDirectory): Promise<void> {
  const script = 'rest=$(tail -n +2 "$1") && printf "%s\\n%s\\n" "$2" "$rest" > "$1"';
  const file = join(cluster, 'postmaster.pid');
  const { code } = await runProgram('/bin/sh', ['-c', script, 'sh', file, UNUSED_PID], { account });
  // A server that ended meanwhile has removed it.
  if (code !== 0 && (await readServerPid(cluster)) !== undefined)
    throw new Error(`${file} cannot be written: a crashed server left it in ${path}. Remove it`);
}
