// What a platform left behind that died: a server that still runs, or a postmaster.pid that names nobody. It is called by
// the one process that holds the directory's lock, so whoever runs here runs for nobody.
import { readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { connectOnce, type Connection } from '../database.ts';
import { isNotReady } from '../database-error.ts';
import { runProgram } from './account.ts';
import type { DataDirectory } from './data-directory.ts';

const END_TIMEOUT_MS = 60_000;
const RETRY_MS = 20;
/** Above every process id that there can be. */
const NOBODY_PID = '2147483647';

/** Afterwards no server runs on the directory, or this has thrown. */
export async function endLeftover(directory: DataDirectory, login: Connection): Promise<void> {
  const deadlineMs = performance.now() + END_TIMEOUT_MS;
  for (;;) {
    const pid = await readServerPid(directory);
    if (pid === undefined) return;
    const isOurs = await isServerOf(directory, pid);
    const isResponding = await responses(directory, login);
    if (isResponding && !isOurs)
      throw new Error(
        `A database server runs on ${directory.path} that this process cannot see. Stop it first`,
      );
    if (!isResponding && !isOurs) return disown(directory);
    // Shutting down by itself already, mostly: then once more does no harm.
    if (isResponding) process.kill(pid, 'SIGINT');
    if (performance.now() > deadlineMs)
      throw new Error(`The database server ${pid} of ${directory.path} does not end. Stop it first`);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function readServerPid({ cluster }: DataDirectory): Promise<number | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : 0;
}

/** Process ids are used again, also by ourselves after a restart of the container; a server works in its cluster. */
async function isServerOf({ cluster }: DataDirectory, pid: number): Promise<boolean> {
  if (process.platform === 'linux')
    return (await readlink(`/proc/${pid}/cwd`).catch(() => undefined)) === (await realpath(cluster));
  const { execFile } = await import('node:child_process');
  return new Promise((resolve) => {
    execFile('/bin/ps', ['-p', String(pid), '-o', 'args='], (_, stdout) => resolve(stdout.includes(cluster)));
  });
}

/** Whether a server lets the owner in: one that does is there, whatever the process ids say. */
async function responses(directory: DataDirectory, login: Connection): Promise<boolean> {
  try {
    return await connectOnce(login, async (client) => {
      const { rows } = await client.query('show data_directory');
      return (await realpath(directory.cluster)) === rows[0]?.data_directory;
    });
  } catch (error) {
    if (isNotReady(error)) return false;
    throw new Error(`A database server on ${directory.path} does not let us in. Stop it first`, {
      cause: error,
    });
  }
}

// The server refuses to start while the process that the file names is alive, whoever that is. The rest of the file stays:
// by it the server sees children of a dead one that still write, and refuses then too. The account writes it, in whose
// directory it lies.
async function disown({ path, cluster, account }: DataDirectory): Promise<void> {
  const script = 'rest=$(tail -n +2 "$1") && printf "%s\\n%s\\n" "$2" "$rest" > "$1"';
  const file = join(cluster, 'postmaster.pid');
  const { code } = await runProgram('/bin/sh', ['-c', script, 'sh', file, NOBODY_PID], { account });
  if (code !== 0) throw new Error(`${file} cannot be written, which a server left in ${path}. Remove it`);
}
