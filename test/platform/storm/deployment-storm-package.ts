// The program as it is installed: a package with the bundle beside its dependencies. What is started from it needs half of the CPU time that
// the sources take, and agent servers find in their namespaces what a package brings.
import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { setup } from '../../support/program-setup.ts';
import { projectRoot } from '../../support/spawned-process.ts';

export type InstalledProgram = AsyncDisposable & { readonly launcher: string };

export async function installProgram(): Promise<InstalledProgram> {
  await setup();
  const bundled = dirname(dirname(process.env['SALLYPORT_TEST_PROGRAM'] ?? ''));
  const modules = join(projectRoot, 'node_modules');
  // On the file system of the packages, which are linked and not copied.
  const directory = await mkdtemp(join(modules, '.cache', 'installed-'));
  const installed = join(directory, 'node_modules');
  const root = join(installed, 'sallyport');
  await mkdir(join(root, 'bin'), { recursive: true });
  await copyFile(join(bundled, 'bin', 'sallyport.js'), join(root, 'bin', 'sallyport.js'));
  await copyFile(join(projectRoot, 'package.json'), join(root, 'package.json'));
  await cp(join(bundled, 'dist'), join(root, 'dist'), { recursive: true });
  const names = (await readdir(modules)).filter((name) => !name.startsWith('.'));
  const paths = names.map((name) => join(modules, name));
  await promisify(execFile)('cp', ['-al', ...paths, installed]);
  return {
    launcher: join(root, 'bin', 'sallyport.js'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
