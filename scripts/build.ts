// Bundles src/main.ts into dist/: what the npm package and the image run. Code splitting keeps every dynamic
// import a file of its own, so the bundle loads as little at start as the checkout does.
// `node scripts/build.ts [folder]`
import { glob, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build, type Metafile } from 'esbuild';

const root: string = join(import.meta.dirname, '..');
const outputFolder: string = resolve(process.argv[2] ?? join(root, 'dist'));

// CommonJS packages call require() for Node's own modules, which ES modules do not have.
const REQUIRE =
  "import { createRequire as createBundleRequire } from 'node:module';const require = createBundleRequire(import.meta.url);";

await rm(outputFolder, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { sallyport: 'src/main.ts' },
  outdir: outputFolder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Flat, so that a path relative to a module means the same in every chunk.
  chunkNames: '[name]-[hash]',
  banner: { js: REQUIRE },
  metafile: true,
  logLevel: 'warning',
});
const packages: readonly string[] = bundledPackages(metafile);
await writeFile(join(outputFolder, 'THIRD-PARTY-LICENSES.txt'), await licensesOf(packages));

for (const [file, { bytes }] of Object.entries(metafile.outputs))
  console.log(`${file}  ${Math.ceil(bytes / 1024)} kB`);
console.log(`bundled packages: ${packages.join(', ')}`);

function bundledPackages(made: Metafile): readonly string[] {
  const names = Object.keys(made.inputs).map(
    (file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1],
  );
  return [...new Set(names.filter((name) => name !== undefined))].toSorted();
}

/** The licences of what was bundled ask to travel with every copy of it. */
async function licensesOf(names: readonly string[]): Promise<string> {
  const sections: string[] = [];
  for (const name of names) {
    const found = await Array.fromAsync(
      glob(`node_modules/${name}/{LICENSE,LICENCE,license}*`, { cwd: root }),
    );
    const [file] = found.toSorted();
    if (file === undefined) throw new Error(`${name} is bundled and has no licence file`);
    sections.push(`${name}\n${'-'.repeat(name.length)}\n${await readFile(join(root, file), 'utf8')}`);
  }
  return sections.join('\n');
}
