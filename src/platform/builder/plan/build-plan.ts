// Everything that a source needs to be built, by what it contains and what its owner asks for.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError } from '../build-error.ts';
import type { GraphConfiguration } from '../source/graph-configuration.ts';
import { readSourceFile } from '../source/source-files.ts';
import { parseCommands, type PlannedCommand } from '../../deployments/command-text.ts';
import { type InstallPlan, manifestNames, planInstall } from './install-plan.ts';
import { planPython } from './python-plan.ts';

export type BuildPlan = {
  /** Of packages that a lock file asks for. */
  readonly install: InstallPlan | undefined;
  /** In their order: what the owner installs by, packages of Python, and what the owner builds by. */
  readonly commands: readonly PlannedCommand[];
  /** A command may write the files that the configuration names. */
  readonly isComplete: boolean;
};

export type AskedCommands = {
  readonly installCommand?: string | undefined;
  readonly buildCommand?: string | undefined;
};

/** A lock file of a large repository has some megabytes. All of them are held, searched and hashed in the process that serves everybody. */
const MAX_LOCK_BYTES = 16 * 1024 * 1024;
const MAX_MANIFEST_BYTES = 1024 * 1024;
const LOCK = /lock|shrinkwrap/;

/** Of a source that was unpacked, before any of its code has run. Throws a BuildError. */
export async function planBuild(
  root: string,
  { directory, dependencies }: Pick<GraphConfiguration, 'directory' | 'dependencies'>,
  { installCommand, buildCommand }: AskedCommands,
): Promise<BuildPlan> {
  const own = commandsOf('install_command', installCommand, '');
  const python = planPython(dependencies, directory, (path) => existsSync(join(root, path)));
  if (!python.ok) throw new BuildError('CREATE_FAILED', python.problem);
  const build = commandsOf('build_command', buildCommand, directory);
  const install = own.length > 0 ? undefined : await findInstall(root, directory);
  return {
    install,
    commands: [...own, ...python.commands, ...build],
    isComplete: own.length === 0 && build.length === 0,
  };
}

function commandsOf(name: string, text: string | undefined, directory: string): readonly PlannedCommand[] {
  if (text === undefined || text.trim() === '') return [];
  const parsed = parseCommands(text, directory);
  if (parsed.ok) return parsed.commands;
  throw new BuildError('BUILD_FAILED', `${name}: ${parsed.problem}`);
}

/** At the root; where nothing is there, beside the configuration. */
async function findInstall(root: string, directory: string): Promise<InstallPlan | undefined> {
  for (const place of new Set(['', directory])) {
    const found = new Map<string, string>();
    for (const name of manifestNames) {
      const maxBytes = LOCK.test(name) ? MAX_LOCK_BYTES : MAX_MANIFEST_BYTES;
      const text = await readSourceFile(root, join(place, name), maxBytes);
      if (text !== undefined) found.set(name, text);
    }
    requireSize(found);
    const plan = planInstall(found, place);
    if (plan !== undefined) return plan;
  }
  return undefined;
}

function requireSize(found: ReadonlyMap<string, string>): void {
  const chars = [...found.values()].reduce((sum, { length }) => sum + length, 0);
  if (chars <= MAX_LOCK_BYTES) return;
  const names = [...found.keys()].join(', ');
  throw new BuildError(
    'CREATE_FAILED',
    `${names} have more than ${MAX_LOCK_BYTES} characters together: pack the lock file of one package manager`,
  );
}
