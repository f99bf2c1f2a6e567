// What installed packages depend on, as one key: the files that they were installed from, and the programs that did it. Pure.
import { createHash } from 'node:crypto';
import type { InstallPlan } from '../plan/install-plan.ts';

export type InstallGround = {
  /** `v26.10.0`: native modules are built for it. */
  readonly nodeVersion: string;
  /** `linux-x64` */
  readonly platform: string;
  /** With the registries. */
  readonly env: Readonly<Record<string, string>>;
};

/** Another number when the way of installing changes. */
const SCHEME = 2;

export function dependencyKey(
  { command, inputs }: Pick<InstallPlan, 'command'> & { readonly inputs: ReadonlyMap<string, string> },
  { nodeVersion, platform, env }: InstallGround,
): string {
  const files = [...inputs].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const variables = Object.entries({ ...env, ...command.env }).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const parts = [SCHEME, nodeVersion, platform, command.words, variables, files.map(([name]) => name)];
  const hash = createHash('sha256').update(JSON.stringify(parts));
  // Each by its own digest: they are large, and one must not continue in the next.
  for (const [, text] of files) hash.update(createHash('sha256').update(text).digest());
  return hash.digest('hex');
}
