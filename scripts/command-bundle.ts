// Bundles one command of src/cli: what its start needs is one file, NAME.js, and each dynamic import is a file
// NAME-MODULE.js. The code splitting of esbuild alone would put what both sides use into a dozen chunks, and each file
// costs a start half a millisecond. So the first file exports the modules that the others share with it.
import { basename, join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

type CommonOptions = BuildOptions & { readonly absWorkingDir: string; readonly outdir: string };
type Graph = Metafile['inputs'];

/** `common` names the root and the folder for the files. Returns what they contain. */
export async function bundleCommand(name: string, common: CommonOptions): Promise<Metafile> {
  const entry = `src/cli/${name}.ts`;
  const probe = await build({ ...common, entryPoints: [entry], write: false, metafile: true });
  const { atStart, later, shared } = divide(probe.metafile.inputs, entry);
  const exported = await exportsOf(shared, common);
  const plugins = [...(common.plugins ?? []), dynamicImports(name)];
  const contents = [
    `export * from './${entry}';`,
    ...shared.map((path, i) => `export * as shared${i} from './${path}';`),
  ];
  const { outdir, ...inOneFile } = { ...common, splitting: false };
  const first = await build({
    ...inOneFile,
    outfile: join(outdir, `${name}.js`),
    stdin: { contents: contents.join('\n'), resolveDir: common.absWorkingDir },
    plugins,
    metafile: true,
  });
  const rest = await build({
    ...common,
    entryPoints: Object.fromEntries(later.map((path) => [fileNameOf(name, path), path])),
    plugins: [sharedModules(name, common.absWorkingDir, exported), ...plugins],
    metafile: true,
  });
  const twice = Object.keys(rest.metafile.inputs).filter(
    (path) => path.startsWith('src/') && atStart.has(path),
  );
  if (twice.length > 0) throw new Error(`modules of ${name} would exist twice: ${twice.join(', ')}`);
  return {
    inputs: { ...first.metafile.inputs, ...rest.metafile.inputs },
    outputs: { ...first.metafile.outputs, ...rest.metafile.outputs },
  };
}

/** `atStart`: all that `entry` imports statically. `later`: what is imported dynamically. `shared`: what both import. */
function divide(graph: Graph, entry: string) {
  const importsOf = (file: string) =>
    (graph[file]?.imports ?? []).filter(({ external }) => external !== true);
  const reachableFrom = (files: readonly string[]): Set<string> => {
    const found = new Set(files);
    for (const file of found)
      for (const { path, kind } of importsOf(file)) if (kind !== 'dynamic-import') found.add(path);
    return found;
  };
  const atStart = reachableFrom([entry]);
  const dynamic = Object.keys(graph)
    .flatMap(importsOf)
    .filter(({ kind }) => kind === 'dynamic-import');
  const later = [...new Set(dynamic.map(({ path }) => path))];
  const afterStart = [...reachableFrom(later)].filter((file) => !atStart.has(file));
  const imported = afterStart.flatMap((file) => importsOf(file).map(({ path }) => path));
  const shared = [...new Set(imported)]
    .filter((path) => path.startsWith('src/') && atStart.has(path))
    .toSorted();
  return { atStart, later, shared };
}

/** The names that each module exports. */
async function exportsOf(
  modules: readonly string[],
  common: BuildOptions,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { metafile } = await build({ ...common, entryPoints: [...modules], write: false, metafile: true });
  const outputs = Object.values(metafile.outputs);
  return new Map(
    modules.map((path) => [path, outputs.find((one) => one.entryPoint === path)?.exports ?? []]),
  );
}

function fileNameOf(command: string, path: string): string {
  const module = /node_modules\/([^/]+)\//.exec(path)?.[1] ?? basename(path, '.ts');
  return `${command}-${module}`;
}

/** A dynamic import becomes one of the file with that module. */
function dynamicImports(command: string): Plugin {
  return {
    name: 'dynamic-imports',
    setup({ onResolve }) {
      onResolve({ filter: /^[^:]+$/ }, ({ path, kind }) => {
        if (kind !== 'dynamic-import') return undefined;
        return { path: `./${command}-${basename(path, '.ts')}.js`, external: true };
      });
    },
  };
}

/** The shared modules, as they are imported after the start: from the first file. */
function sharedModules(
  command: string,
  root: string,
  exported: ReadonlyMap<string, readonly string[]>,
): Plugin {
  const modules = [...exported.keys()];
  return {
    name: 'shared-modules',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /\.ts$/ }, ({ path, resolveDir }) => {
        const at = modules.findIndex((module) => join(root, module) === join(resolveDir, path));
        return at === -1 ? undefined : { path: String(at), namespace: 'shared', sideEffects: false };
      });
      onResolve({ filter: /./, namespace: 'shared' }, ({ path }) => ({ path, external: true }));
      onLoad({ filter: /./, namespace: 'shared' }, ({ path }) => {
        const names = exported.get(modules[Number(path)] ?? '') ?? [];
        const lines = names.map((name) => `export const ${name} = /* @__PURE__ */ exportOf('${name}');`);
        return {
          contents: `import { shared${path} as shared } from './${command}.js';
            const exportOf = (name) => shared[name];
            ${lines.join('\n')}`,
        };
      });
    },
  };
}
