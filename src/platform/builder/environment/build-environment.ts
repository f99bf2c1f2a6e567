// What is the same for all builds of a machine: programs, variables and registries.
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../base/log.ts';
import type { WorkloadMount } from '../../../workload/workload.ts';
import type { InstallGround } from '../dependencies/dependency-key.ts';
import { readRegistries } from './registries.ts';
import { prepareToolchain } from './toolchain.ts';

export type BuildEnvironment = {
  readonly bin: string;
  readonly mounts: readonly WorkloadMount[];
  readonly env: Readonly<Record<string, string>>;
  /** Of the registries. */
  readonly hosts: readonly string[];
  readonly hasNpm: boolean;
  readonly installGround: InstallGround;
};

/** `env`: the variables of the operator, of whom builds get the addresses of registries and nothing else. */
export async function prepareBuildEnvironment(
  directory: string,
  { node, env, log }: { readonly node: string; readonly env: NodeJS.ProcessEnv; readonly log: Log },
): Promise<BuildEnvironment> {
  const tools = await prepareToolchain(directory, { node, path: env['PATH'] ?? '' });
  const registries = await readRegistries({ node, npm: tools.npm, env }, log);
  const npmrc = join(tools.directory, 'npmrc');
  await writeFile(npmrc, registries.npmrc);
  await chmod(npmrc, 0o644);
  const variables = { ...tools.env, ...registries.env, npm_config_userconfig: npmrc, ...QUIET };
  return {
    ...{ bin: tools.bin, mounts: tools.mounts, hosts: registries.hosts, hasNpm: tools.npm !== undefined },
    env: variables,
    installGround: {
      ...{ nodeVersion: process.version, platform: `${process.platform}-${process.arch}` },
      env: { ...registries.env, npmrc: registries.npmrc },
    },
  };
}

/** Package managers ask for updates of themselves, and pip warns of a root that it has not. */
const QUIET: Readonly<Record<string, string>> = {
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_INPUT: '1',
};
