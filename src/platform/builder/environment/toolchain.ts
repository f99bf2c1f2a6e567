// The programs of a build: Node, the one that will run what is built, so that native modules fit it; and npm of this machine, run by
// that Node. Everything else is a package, or belongs to the system.
import { access, chmod, mkdir, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { shellQuote } from '../../../base/variables/shell-export.ts';
import type { WorkloadMount } from '../../../workload/workload.ts';

export type Toolchain = {
  readonly directory: string;
  /** First in `PATH`. */
  readonly bin: string;
  /** Of the machine; undefined: there is none. */
  readonly npm: string | undefined;
  readonly mounts: readonly WorkloadMount[];
  readonly env: Readonly<Record<string, string>>;
};

const NPM = 'npm-cli.js';
const NPX = 'npx-cli.js';
const HEADERS = 'include/node';

/** Writes them to `directory`, over those of an earlier start. `path`: the PATH of the operator, in which npm may be. */
export async function prepareToolchain(
  directory: string,
  { node, path }: { readonly node: string; readonly path: string },
): Promise<Toolchain> {
  const program = await realpath(node);
  const npm = await findNpm(program, path);
  const unfinished = `${directory}.new`;
  const bin = join(unfinished, 'bin');
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(bin, { recursive: true });
  await symlink(program, join(bin, 'node'));
  for (const [name, script] of [
    ['npm', NPM],
    ['npx', NPX],
  ] as const)
    if (npm !== undefined) await writeScript(join(bin, name), program, join(npm, 'bin', script));
  for (const each of [unfinished, bin]) await chmod(each, 0o755);
  await rm(directory, { recursive: true, force: true });
  await rename(unfinished, directory);
  const headers = join(dirname(dirname(program)), HEADERS);
  const hasHeaders = await isThere(join(headers, 'node.h'));
  const sources = [directory, program, ...(npm === undefined ? [] : [npm]), ...(hasHeaders ? [headers] : [])];
  // Every build sees what belongs to the system.
  const own = sources.filter((source) => !source.startsWith('/usr/'));
  return {
    ...{ directory, bin: join(directory, 'bin'), npm: npm && join(npm, 'bin', NPM) },
    mounts: own.map((source) => ({ source, target: source })),
    // Without it, what compiles a native module fetches them from a host that builds do not reach.
    env: hasHeaders ? { npm_package_config_node_gyp_nodedir: dirname(dirname(headers)) } : {},
  };
}

async function writeScript(file: string, node: string, script: string): Promise<void> {
  await writeFile(file, `#!/bin/sh\nexec ${shellQuote(node)} ${shellQuote(script)} "$@"\n`);
  await chmod(file, 0o755);
}

/** The directory of the package: that of the Node itself, or what `npm` in PATH is a link to. */
async function findNpm(node: string, path: string): Promise<string | undefined> {
  const beside = join(dirname(dirname(node)), 'lib/node_modules/npm/bin', NPM);
  const inPath = path.split(delimiter).filter((folder) => isAbsolute(folder));
  for (const candidate of [beside, ...inPath.map((folder) => join(folder, 'npm'))]) {
    const real = await realpath(candidate).catch(() => '');
    const root = dirname(dirname(real));
    if (basename(real) === NPM && (await isThere(join(root, 'bin', NPX)))) return root;
  }
  return undefined;
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
