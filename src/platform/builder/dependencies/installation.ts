// Packages that a lock file alone decides: installed once for a workspace, in a directory with nothing but the manifests, and kept.
import { chmod, lchown, lstat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createOwnedDirectory } from '../../../workload/owned-directory.ts';
import { removeTree } from '../../../workload/tree-removal.ts';
import type { WorkloadUser } from '../../../workload/workload.ts';
import { measureTree, openTree, sealTree } from '../output/sealed-tree.ts';
import type { PlannedCommand } from '../../deployments/command-text.ts';
import type { InstallPlan, Manifests } from '../plan/install-plan.ts';
import type { DependencyCache, HeldTree } from './dependency-cache.ts';
import { dependencyKey, type InstallGround } from './dependency-key.ts';
import { copyTree } from './tree-copy.ts';

export type InstallationParts = {
  readonly cache: DependencyCache;
  /** Of this installation alone, on the file system of the cache: nothing is there. */
  readonly directory: string;
  readonly workspaceId: string;
  readonly user: WorkloadUser | undefined;
  readonly ground: InstallGround;
  readonly run: (command: PlannedCommand, root: string) => Promise<void>;
};

export type Packages = { readonly kind: 'cached' | 'installed'; readonly tree: HeldTree };

const PACKAGES = 'node_modules';

/** Undefined: there are none. Rejects as `run` does. */
export async function installPackages(
  { cache, directory: place, workspaceId, user, ground, run }: InstallationParts,
  plan: InstallPlan & { readonly inputs: Manifests },
): Promise<Packages | undefined> {
  const key = dependencyKey(plan, ground);
  const kept = cache.hold(workspaceId, key);
  if (kept !== undefined) return { kind: 'cached', tree: kept };
  const tree = join(place, PACKAGES);
  try {
    await createOwnedDirectory(place, user);
    for (const [name, text] of plan.inputs) {
      const file = join(place, name);
      await writeFile(file, text, { flag: 'wx', mode: 0o644 });
      if (user !== undefined) await lchown(file, user.uid, user.gid);
    }
    await run({ ...plan.command, directory: '' }, place);
    // A link would lead out of what was written.
    const stats = await lstat(tree).catch(() => undefined);
    if (stats?.isDirectory() !== true) {
      await removeTree(place);
      return undefined;
    }
    await sealTree(tree, user);
    await cache.add(workspaceId, key, { tree, bytes: await measureTree(tree) });
  } catch (error) {
    await removeTree(place);
    throw error;
  }
  const added = cache.hold(workspaceId, key);
  if (added === undefined)
    return { kind: 'installed', tree: { path: tree, release: () => removeTree(place) } };
  await removeTree(place);
  return { kind: 'installed', tree: added };
}

/**
 * `copied` for a build that goes on as `user`, who may change them; `shared` for one that is finished and sealed. Replaces what is at
 * `node_modules` of the directory.
 */
export async function placePackages(
  tree: Pick<HeldTree, 'path'>,
  directory: string,
  mode: { readonly kind: 'copied'; readonly user: WorkloadUser | undefined } | { readonly kind: 'shared' },
): Promise<void> {
  const target = join(directory, PACKAGES);
  const { mode: before } = await lstat(dirname(target));
  // Without root, nothing is made in a directory that cannot be written to.
  if (mode.kind === 'shared') await chmod(directory, before | 0o200);
  await removeTree(target);
  await copyTree(tree.path, target, mode.kind);
  if (mode.kind === 'copied') await openTree(target, mode.user);
  else await chmod(directory, before & 0o7777);
}
