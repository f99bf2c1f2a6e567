// A package with the bundle in a folder of the test's own: its launcher, package.json and dist/.
import { copyFile, cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { launcher, program, projectRoot, runToEnd } from './spawned-process.ts';

/** The bundle is that of the run, or where the run needs none, made for this package. */
export async function createPackage(folder: string): Promise<void> {
  await mkdir(join(folder, 'bin'), { recursive: true });
  await copyFile(launcher, join(folder, 'bin', 'sallyport.js'));
  await copyFile(join(projectRoot, 'package.json'), join(folder, 'package.json'));
  const dist = join(folder, 'dist');
  if (program !== launcher) return cp(join(dirname(dirname(program)), 'dist'), dist, { recursive: true });
  const built = await runToEnd(process.execPath, [join(projectRoot, 'scripts', 'build.ts'), dist]);
  if (built.code !== 0) throw new Error(`the bundle could not be built\n${built.stderr}`);
}
