// What this machine can hold for a box, found out by doing it once: each part that is missing is named with its reason and
// what to do about it.
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MissingLimit, noCgroups } from '../cgroup/cgroups.ts';
import { detectCgroups } from '../cgroup/detect-cgroups.ts';
import { linkUsr } from '../snapshots/base-snapshot.ts';
import { Box, type BoxSetup } from './box.ts';
import { defaultUserRange } from './host-users.ts';
import { MountNamespace, type Privilege, privilegeOfProcess } from './namespaces/mount-namespace.ts';
import { checkPrerequisites, explainUserNamespaces } from './prerequisites.ts';
import { encodeFilter } from './seccomp/filter.ts';
import { createImage, MIN_CAPACITY_BYTES, openMounts, type StorageKind } from './storage.ts';

export type Capabilities = {
  readonly privilege: Privilege;
  /** The version of bwrap; undefined: it is not installed. */
  readonly bubblewrap: string | undefined;
  /** Why no box can be isolated, with what to do; empty: it can. */
  readonly obstacles: readonly string[];
  readonly storage: StorageKind;
  readonly limits: { readonly version: 'v1' | 'v2' | 'none'; readonly missing: readonly MissingLimit[] };
  /** What a box lacks here although it is isolated. */
  readonly warnings: readonly string[];
};

/** Where the mounts of boxes lie by default. As root below /run, because every user can enter that. */
export function defaultMounts(directory: string, privilege: Privilege = privilegeOfProcess()): string {
  return privilege === 'root' ? '/run/sallyport-boxes' : join(directory, 'mounts');
}

/** Leaves nothing behind. */
export async function detectCapabilities(): Promise<Capabilities> {
  const privilege = privilegeOfProcess();
  const scratch = await mkdtemp(join(tmpdir(), 'sallyport-boxes-'));
  try {
    const { version: bubblewrap, obstacles: missingParts } = await checkPrerequisites();
    const cgroups = await detectCgroups(`sallyport-trial-${process.pid}`);
    await cgroups.close();
    const { version, missing } = cgroups;
    const limits = { version, missing };
    if (missingParts.length > 0)
      return { privilege, bubblewrap, obstacles: missingParts, storage: 'tmpfs', limits, warnings: [] };
    const { obstacle, storage, warning } = await tryBox(scratch, privilege);
    const obstacles = obstacle === undefined ? [] : [obstacle, ...(await explainUserNamespaces())];
    const warnings = [...(warning ?? []), ...describeLimits(missing), ...describeUser(privilege)];
    return { privilege, bubblewrap, obstacles, storage, limits, warnings };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type Trial = {
  readonly obstacle?: string;
  readonly storage: StorageKind;
  readonly warning?: readonly string[];
};

/** Runs `true` in a box of the real kind. */
async function tryBox(scratch: string, privilege: Privilege): Promise<Trial> {
  let namespace: MountNamespace | undefined;
  let storage: StorageKind = 'tmpfs';
  try {
    namespace = await MountNamespace.open(privilege);
    const mounts = defaultMounts(scratch, privilege);
    await openMounts(namespace, mounts, {});
    const loop = privilege === 'root' ? await tryLoop(namespace, scratch) : NOT_ROOT;
    storage = loop === undefined ? 'loop' : 'tmpfs';
    await runTrial(namespace, { scratch, mounts, storage });
    return { storage, warning: loop === undefined ? [] : [loop] };
  } catch (error) {
    return { storage, obstacle: error instanceof Error ? error.message : String(error) };
  } finally {
    namespace?.[Symbol.dispose]();
  }
}

const NOT_ROOT = 'files of boxes lie in memory, because only root may mount a file system in a file';

/** Undefined: an ext4 in a file can be mounted. */
async function tryLoop(namespace: MountNamespace, scratch: string): Promise<string | undefined> {
  const image = join(scratch, 'trial.img');
  try {
    await createImage(image, MIN_CAPACITY_BYTES);
    const script = 'mkdir "$1.d"; mount -n -o loop "$1" "$1.d"; umount -n "$1.d"';
    await namespace.require('an ext4 in a file could not be mounted', script, [image]);
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `files of boxes lie in memory: ${reason} (Debian packages: e2fsprogs, mount; devices: /dev/loop-control)`;
  } finally {
    await rm(image, { force: true });
  }
}

async function runTrial(
  namespace: MountNamespace,
  { scratch, mounts, storage }: { scratch: string; mounts: string; storage: StorageKind },
): Promise<void> {
  const uid = namespace.privilege === 'root' ? defaultUserRange.first : undefined;
  const capacityBytes = MIN_CAPACITY_BYTES;
  const root = join(scratch, 'root');
  await mkdir(root);
  await linkUsr(root);
  if (storage === 'loop') await createImage(join(scratch, 'disk.img'), capacityBytes);
  const seccompFile = join(scratch, 'seccomp.bpf');
  await writeFile(seccompFile, encodeFilter(process.arch) ?? '');
  const setup: BoxSetup = {
    id: 'trial',
    record: { snapshotId: 'trial', capacityBytes, kind: storage, ...(uid === undefined ? {} : { uid }) },
    directory: scratch,
    snapshot: { id: 'trial', root, bytes: 0, entries: 0, hostUsr: { hidden: [] } },
    namespace,
    mounts,
    cgroups: noCgroups(''),
    seccompFile,
    findHidden: async () => [],
    onGrown: async () => undefined,
  };
  const box = new Box(setup, { limits: {}, caBundle: '', capacityBytes });
  try {
    await box.open();
    const { code, lastLines } = await (await box.start(['/usr/bin/true'], {})).exited;
    if (code !== 0) throw new Error(`bwrap cannot isolate a program: ${lastLines.trim()}`);
  } finally {
    await box.dismantle();
  }
}

function describeLimits(missing: readonly MissingLimit[]): readonly string[] {
  const [first] = missing;
  if (first === undefined) return [];
  const names = missing.map(({ limit }) => limit).join(', ');
  return [`boxes have no limit of ${names}: ${first.reason}`];
}

function describeUser(privilege: Privilege): readonly string[] {
  return privilege === 'root'
    ? []
    : ['all boxes run as one user of the host, so limits that count by user are shared by them'];
}
