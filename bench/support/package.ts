// The bundle of this checkout in the layout of the npm package, without sources.
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root: string = join(import.meta.dirname, '..', '..');

/** The bundle as a package in `directory`; rebuilt when it is older than what it is built from. */
export function layOutPackage(directory: string): string {
  const bundle = join(root, 'dist', 'sallyport.js');
  const changedMs = Math.max(...buildInputs().map((file) => statSync(join(root, file)).mtimeMs));
  const builtMs = statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (builtMs < changedMs) {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'build.ts')], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`the bundle cannot be built:\n${stderr}`);
  }
  const laidOut = join(directory, 'package');
  mkdirSync(join(laidOut, 'bin'), { recursive: true });
  for (const part of ['bin/sallyport.js', 'package.json', 'dist'])
    cpSync(join(root, part), join(laidOut, part), { recursive: true });
  return laidOut;
}

/** The files of the checkout that the build reads. The lockfile stands for the packages. */
export function buildInputs(): readonly string[] {
  const sources = globSync('src/**/*.{ts,sql}', { cwd: root });
  return [...sources, ...scriptsOf('build.ts'), 'tsconfig.json', 'package-lock.json'];
}

/** A script and the scripts that it imports. */
function scriptsOf(name: string): readonly string[] {
  const found = new Set([name]);
  for (const each of found) {
    const text = readFileSync(join(root, 'scripts', each), 'utf8');
    for (const [, imported = ''] of text.matchAll(/ from '\.\/([\w-]+\.ts)'/g)) found.add(imported);
  }
  return [...found].map((script) => `scripts/${script}`);
}
