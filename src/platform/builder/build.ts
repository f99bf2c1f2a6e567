// One build: from the archive of a source to a directory that agent servers are started from. It is built where it stays, because what
// is installed contains the path of its place. Nobody reads it before its row says that it is ready.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Workloads } from '../../workload/workload.ts';
import type { BuildTask } from '../deployments/builds.ts';
import type { LogLevel } from '../deployments/log-lines.ts';
import type { SourceStore } from '../deployments/source-store.ts';
import { BuildError } from './build-error.ts';
import type { DependencyCache } from './dependencies/dependency-cache.ts';
import { installPackages, type Packages, placePackages } from './dependencies/installation.ts';
import type { BuildEnvironment } from './environment/build-environment.ts';
import { networkOfBuilds } from './environment/build-network.ts';
import { measureTree, sealTree, shareTree } from './output/sealed-tree.ts';
import { type BuildPlan, planBuild } from './plan/build-plan.ts';
import type { InstallPlan } from './plan/install-plan.ts';
import type { BuilderSettings } from './settings.ts';
import {
  type GraphConfiguration,
  readGraphConfiguration,
  requireNamedFiles,
} from './source/graph-configuration.ts';
import { unpackStoredSource } from './source/stored-source.ts';
import { CommandRunner } from './steps/command-runner.ts';

/** What all builds of this machine share. */
export type BuildGround = {
  readonly workloads: Pick<Workloads, 'start' | 'userOf' | 'releaseUser'>;
  readonly sources: Pick<SourceStore, 'read'>;
  readonly cache: DependencyCache;
  /** Has a directory for the unfinished installation of each build. */
  readonly installations: string;
  readonly environment: BuildEnvironment;
  readonly settings: BuilderSettings;
};

export type BuildPlace = {
  /** Nothing is there yet. */
  readonly root: string;
  readonly log: { add(level: LogLevel, message: string, isCut?: boolean): void };
  /** The build is not wanted any more. */
  readonly signal: AbortSignal;
};

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/** Its size. Rejects with a BuildError, or with the reason of the signal; whoever called removes what is there. */
export async function buildSource(ground: BuildGround, task: BuildTask, place: BuildPlace): Promise<number> {
  const owner = ownerOf(task.buildId);
  try {
    const user = await ground.workloads.userOf(owner);
    return await build(ground, task, { ...place, user });
  } catch (error) {
    throw describeError(error);
  } finally {
    // What is left of it says nothing about the build: its directories are swept until it is released, and that tells why it is not.
    await ground.workloads.releaseUser(owner).catch(() => undefined);
  }
}

/** Of the workloads of a build: another one than that of the deployment, whose secrets a build must not reach. */
export function ownerOf(buildId: string): string {
  return `${OWNER}${buildId}`;
}

/** Undefined: it is no owner of a build. */
export function buildIdOf(owner: string): string | undefined {
  return owner.startsWith(OWNER) ? owner.slice(OWNER.length) : undefined;
}

const OWNER = 'build-';

type Place = BuildPlace & { readonly user: Awaited<ReturnType<Workloads['userOf']>> };

async function build(ground: BuildGround, task: BuildTask, place: Place): Promise<number> {
  const { root, log, signal, user } = place;
  const source = { path: task.sourcePath, sha256: task.sourceSha256 };
  const unpacked = await unpackStoredSource(ground.sources, source, { directory: root, owner: user, signal });
  log.add('INFO', `the source has ${unpacked.entries} files and directories`);
  const configuration = await readGraphConfiguration(root, task.configPath, NODE_MAJOR);
  for (const note of configuration.notes) log.add('WARNING', `${configuration.path}: ${note}`);
  const plan = await planBuild(root, configuration, task);
  if (plan.isComplete) await requireNamedFiles(root, configuration, 'CREATE_FAILED');
  const runner = createRunner(ground, task, place);
  await runPlan(ground, { task, place, plan, configuration, runner });
  signal.throwIfAborted();
  await shareTree(root, await ground.workloads.userOf(task.deploymentId));
  return measureTree(root);
}

type Prepared = {
  readonly task: BuildTask;
  readonly place: Place;
  readonly plan: BuildPlan;
  readonly configuration: GraphConfiguration;
  readonly runner: CommandRunner;
};

/** Afterwards the tree is sealed. */
async function runPlan(ground: BuildGround, prepared: Prepared): Promise<void> {
  const { place, plan, configuration, runner } = prepared;
  const { root, user } = place;
  const packages = await preparePackages(ground, prepared);
  const directory = join(root, plan.install?.command.directory ?? '');
  const goesOn = plan.commands.length > 0;
  try {
    if (packages !== undefined && goesOn)
      await placePackages(packages.tree, directory, { kind: 'copied', user });
    if (plan.install !== undefined && plan.install.inputs === undefined)
      await runner.run(plan.install.command, root);
    for (const command of plan.commands) await runner.run(command, root);
    await requireRoot(root);
    await requireNamedFiles(root, configuration, 'BUILD_FAILED');
    await sealTree(root, user);
    if (packages !== undefined && !goesOn) await placePackages(packages.tree, directory, { kind: 'shared' });
  } finally {
    await packages?.tree.release();
  }
}

/** Undefined: none, or they are installed within the source. */
async function preparePackages(
  ground: BuildGround,
  { task, place, plan: { install }, runner }: Prepared,
): Promise<Packages | undefined> {
  if (install === undefined) return undefined;
  const { environment, cache, installations } = ground;
  if (!environment.hasNpm)
    throw new BuildError(
      'BUILD_FAILED',
      'npm was not found on the machine that builds: its operator can install it',
    );
  place.log.add('INFO', `packages are installed by ${install.reason}`);
  const { inputs } = install;
  if (inputs === undefined) return undefined;
  const own: InstallPlan & { readonly inputs: typeof inputs } = { ...install, inputs };
  const packages = await installPackages(
    {
      ...{ cache, directory: join(installations, task.buildId), workspaceId: task.workspaceId },
      user: place.user,
      ground: environment.installGround,
      run: (command, root) => runner.run(command, root),
    },
    own,
  );
  if (packages?.kind === 'cached') place.log.add('INFO', 'they were installed before and have not changed');
  return packages;
}

function createRunner(ground: BuildGround, task: BuildTask, { log, signal, user }: Place): CommandRunner {
  const { workloads, environment, settings } = ground;
  return new CommandRunner({
    ...{ workloads, user, log, signal },
    network: networkOfBuilds(task.workspaceId, [...environment.hosts, ...settings.allowHosts]),
    limits: settings,
    ...{ bin: environment.bin, mounts: environment.mounts, env: environment.env },
    deadlineMs: performance.now() + settings.timeoutMs,
  });
}

/** It cannot be replaced where it is mounted, and could be without mounts. */
async function requireRoot(root: string): Promise<void> {
  const stats = await lstat(root).catch(() => undefined);
  if (stats?.isDirectory() !== true)
    throw new BuildError('BUILD_FAILED', 'the build has removed its own directory');
}

const FULL: readonly unknown[] = ['ENOSPC', 'EDQUOT'];
/** As the programs say it that copy trees. */
const FULL_MESSAGE = /No space left on device|Disk quota exceeded/;

function describeError(error: unknown): unknown {
  if (error instanceof BuildError) return error;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (!FULL.includes(code) && !FULL_MESSAGE.test(String(message))) return error;
  return new BuildError('BUILD_FAILED', 'no space is left on the machine that builds', { cause: error });
}
