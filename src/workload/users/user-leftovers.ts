// What programs of a host user leave on this machine besides files in directories of ours: it must be gone before somebody else gets
// the user, who would own it.
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../box-host/command.ts';
import type { WorkloadUser } from '../workload.ts';
import { asUser, endProcesses } from './user-processes.ts';

/** Where every user of a machine may write. */
const SHARED_PLACES: readonly string[] = ['/tmp', '/var/tmp', '/dev/shm', '/dev/mqueue', '/run/lock'];
const OTHERS_WRITE = 0o002;
const REMOVAL_MS = 60_000;

// As the user whose files they are: a link leads to nothing that is not its own already. It may have closed directories to itself.
const REMOVE = String.raw`
find "$@" -xdev -type d -not -perm -u=rwx -execdir chmod u+rwx -- {} \;
rm -rf --one-file-system -- "$@"`;

/** Each list of the kernel with the option of ipcrm. */
const IPC_LISTS: readonly (readonly [name: string, option: string])[] = [
  ['shm', '-m'],
  ['msg', '-q'],
  ['sem', '-s'],
];

/** Rejects if a process of the user does not end; files that cannot be removed stay, as they do for any user. */
export async function clearUser(user: WorkloadUser): Promise<void> {
  await endProcesses(user);
  for (const [name, option] of IPC_LISTS)
    for (const id of await findIpc(name, user.uid)) await runCommand(['ipcrm', option, id]);
  const paths = (await Promise.all(SHARED_PLACES.map((place) => findOwn(place, user.uid)))).flat();
  if (paths.length === 0) return;
  const silent = ['/bin/sh', '-c', `exec >/dev/null 2>&1${REMOVE}`, 'sh', ...paths.slice(0, MAX_PATHS)];
  await runCommand(asUser(user, silent), [], REMOVAL_MS);
}

/** Of a command line. What is more stays, as it does for any user. */
const MAX_PATHS = 1_000;

/** In a place, and in directories there in which everybody may write too. */
async function findOwn(place: string, uid: number, depth = 1): Promise<readonly string[]> {
  const names = await readdir(place).catch(() => []);
  const found = names.map(async (name): Promise<readonly string[]> => {
    const path = join(place, name);
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.uid === uid) return [path];
    const isShared = stats?.isDirectory() === true && (stats.mode & OTHERS_WRITE) !== 0;
    return isShared && depth > 0 ? findOwn(path, uid, depth - 1) : [];
  });
  return (await Promise.all(found)).flat();
}

async function findIpc(name: string, uid: number): Promise<readonly string[]> {
  const text = await readFile(`/proc/sysvipc/${name}`, 'utf8').catch(() => '');
  return parseIpcList(text, uid);
}

/** The ids of what this user owns or has made. The first line names the columns. */
export function parseIpcList(text: string, uid: number): readonly string[] {
  const [header = '', ...lines] = text.split('\n').map((line) => line.trim().split(/\s+/));
  const at = (name: string): number => header.indexOf(name);
  const [id, owner, maker] = [Math.max(at('shmid'), at('msqid'), at('semid')), at('uid'), at('cuid')];
  const isOwn = (line: readonly string[]): boolean =>
    [owner, maker].some((column) => line[column] === String(uid));
  return lines.filter(isOwn).flatMap((line) => line[id] ?? []);
}
