// The bundle for the tests that start `sallyport` as a process: it is ready after half of the CPU time that the sources
// take. Built again only when the sources have changed. Runs in the process of vitest itself, for the runs that have files
// of the project `programs`.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { buildInputs } from '../../bench/support/package.ts';
import { launcher, projectRoot } from './spawned-process.ts';

/** A run of older sources may still use its bundle. */
const UNUSED_AFTER_MS = 24 * 3_600_000;

const cache: string = join(projectRoot, 'node_modules', '.cache', 'program');

export async function setup(): Promise<void> {
  const folder = join(cache, await hashOf([...buildInputs(), 'bin/sallyport.js', 'package.json']));
  const now = new Date();
  const isBuilt = await utimes(folder, now, now).then(
    () => true,
    () => false,
  );
  if (!isBuilt) {
    await removeUnused(now.getTime());
    await make(folder);
  }
  process.env['SALLYPORT_TEST_PROGRAM'] = join(folder, 'bin', 'sallyport.js');
}

async function hashOf(names: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const name of names.toSorted())
    hash.update(`${name}\0`).update(await readFile(join(projectRoot, name)));
  return hash.digest('hex').slice(0, 16);
}

async function removeUnused(nowMs: number): Promise<void> {
  await mkdir(cache, { recursive: true });
  for (const name of await readdir(cache)) {
    const { mtimeMs } = await stat(join(cache, name));
    if (nowMs - mtimeMs > UNUSED_AFTER_MS) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Appears at once and whole, because another run may look for it. */
async function make(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`;
  await mkdir(join(unfinished, 'bin'), { recursive: true });
  await copyFile(launcher, join(unfinished, 'bin', 'sallyport.js'));
  for (const name of ['package.json', 'config'])
    await symlink(join(projectRoot, name), join(unfinished, name));
  await build(join(unfinished, 'dist'));
  try {
    await rename(unfinished, folder);
  } catch {
    // The other run was faster; its bundle is the same.
    await stat(folder);
    await rm(unfinished, { recursive: true });
  }
}

async function build(folder: string): Promise<void> {
  const script = join(projectRoot, 'scripts', 'build.ts');
  const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the bundle could not be built: ${script} ended with ${String(code)}`);
}
