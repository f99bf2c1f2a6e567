// Finds out which version of cgroups limits boxes on this machine, by making a group and setting limits in it.
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cgroups, type MissingLimit, noCgroups } from './cgroups.ts';
import { type ControllerV1, cgroupsV1 } from './cgroups-v1.ts';
import { cgroupsV2 } from './cgroups-v2.ts';
import { codeOf } from './group-directory.ts';
import { parsePlacement } from './placement.ts';

const LIMITS: readonly MissingLimit['limit'][] = ['memory', 'cpu', 'pids'];

/** `name`: of the group that holds those of all boxes. The same name finds what an earlier process left. */
export async function detectCgroups(name: string): Promise<Cgroups> {
  const [cgroup, mountinfo] = await Promise.all(
    ['/proc/self/cgroup', '/proc/self/mountinfo'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  const { v1, v2 } = parsePlacement(cgroup ?? '', mountinfo ?? '');
  const unified = v2 === undefined ? 'cgroups are not mounted' : await tryV2(v2, name);
  if (typeof unified !== 'string') return unified;
  // A hybrid machine has the controllers in version 1 and an empty tree of version 2.
  return LIMITS.some((limit) => v1.has(limit)) ? tryV1(v1, name) : noCgroups(unified);
}

async function tryV1(placed: ReadonlyMap<string, string>, name: string): Promise<Cgroups> {
  const directories = new Map<ControllerV1, string>();
  const missing: MissingLimit[] = [];
  for (const controller of [...LIMITS, 'cpuacct'] as const) {
    const own = placed.get(controller);
    const reason = own === undefined ? 'the controller is not mounted' : await tryGroup(join(own, name));
    if (reason === undefined) directories.set(controller, join(own ?? '', name));
    else if (controller !== 'cpuacct') missing.push({ limit: controller, reason });
  }
  const [first] = missing;
  return directories.size === 0 && first ? noCgroups(first.reason) : cgroupsV1(directories, missing);
}

/** Undefined: the group can be made. */
async function tryGroup(directory: string): Promise<string | undefined> {
  try {
    await mkdir(directory, { recursive: true });
    // Whether groups can be made in it, which differs from whether it exists.
    await mkdir(join(directory, 'trial'), { recursive: true });
    await rmdir(join(directory, 'trial'));
    return undefined;
  } catch (error) {
    return describeFailure(directory, error);
  }
}

async function tryV2(own: string, name: string): Promise<Cgroups | string> {
  const available = (await readFile(join(own, 'cgroup.controllers'), 'utf8').catch(() => ''))
    .trim()
    .split(' ');
  const usable = LIMITS.filter((limit) => available.includes(limit));
  if (usable.length === 0) return `the group ${own} has no controller: start with Delegate=yes`;
  const directory = join(own, name);
  try {
    await mkdir(directory, { recursive: true });
    await enable(own, usable);
    await enable(directory, usable);
  } catch (error) {
    return describeFailure(directory, error);
  }
  const missing = LIMITS.filter((limit) => !usable.includes(limit));
  return cgroupsV2(
    directory,
    missing.map((limit) => ({ limit, reason: 'the controller is not delegated' })),
  );
}

/** A group with processes of its own cannot enable controllers: then this process moves to a group beside those of boxes. */
async function enable(group: string, controllers: readonly string[]): Promise<void> {
  const file = join(group, 'cgroup.subtree_control');
  const text = controllers.map((controller) => `+${controller}`).join(' ');
  try {
    await writeFile(file, text);
  } catch (error) {
    if (codeOf(error) !== 'EBUSY') throw error;
    await mkdir(join(group, 'sallyport-host'), { recursive: true });
    await writeFile(join(group, 'sallyport-host', 'cgroup.procs'), '0');
    await writeFile(file, text);
  }
}

function describeFailure(directory: string, error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return `the group ${directory} cannot be made without root or a delegated group`;
  if (code === 'EBUSY')
    return `the group of this process has other processes: start it in a group of its own, with Delegate=yes`;
  return `the group ${directory} cannot be made: ${error instanceof Error ? error.message : String(error)}`;
}
