// How esbuild sees the files of a deployment. Packages stay outside of the bundle: each import of one is resolved now, from the
// folder of the importing file, as Node would do it there, so that the bundle may be anywhere. What a file asks about its own
// place (`import.meta.dirname`, `__dirname`) is the place of the source.
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { dirname, extname, isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from './esbuild.ts';

const LOADERS: Readonly<Record<string, 'ts' | 'tsx' | 'js' | 'jsx'>> = {
  ...{ '.ts': 'ts', '.mts': 'ts', '.cts': 'ts', '.tsx': 'tsx' },
  ...{ '.js': 'js', '.mjs': 'js', '.cjs': 'js', '.jsx': 'jsx' },
};
const SOURCES = /\.(?:[cm]?[jt]s|[jt]sx)$/;
/** Marks the question of this plugin itself. */
const RESOLVING: unique symbol = Symbol('resolving');

export const sourcePlugin: Plugin = {
  name: 'sources',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...asked }) => {
      if (pluginData === RESOLVING || asked.kind === 'entry-point') return undefined;
      if (isBuiltin(path)) return { path, external: true };
      const found = await resolve(path, { ...asked, pluginData: RESOLVING });
      if (found.errors.length > 0)
        // An import that runs later may be of a package that is optional.
        return asked.kind === 'import-statement'
          ? { errors: [notInstalled(path)] }
          : { path, external: true };
      if (found.external || !isAbsolute(found.path)) return { path: found.path, external: true };
      // By an alias of tsconfig.json, or of the same repository: a file of the deployment. esbuild resolves it again, and then
      // with what its tsconfig.json says.
      if (!found.path.includes('/node_modules/')) return undefined;
      const isRequired = asked.kind === 'require-call' || asked.kind === 'require-resolve';
      return { path: isRequired ? found.path : pathToFileURL(found.path).href, external: true };
    });
    onLoad({ filter: SOURCES }, async ({ path }) => ({
      contents: inPlace(await readFile(path, 'utf8'), path),
      loader: LOADERS[extname(path)] ?? 'js',
      resolveDir: dirname(path),
    }));
  },
};

function notInstalled(path: string) {
  return { text: `"${path}" is not installed, and no alias of tsconfig.json: install the dependencies` };
}

const META = /\bimport\.meta\.(url|dirname|filename)\b/g;

/** In the first line, so that every line keeps its number. Of the names that the file does not declare itself. */
function inPlace(text: string, path: string): string {
  const values = {
    __sallyport_url: pathToFileURL(path).href,
    __sallyport_dirname: dirname(path),
    __sallyport_filename: path,
    __dirname: dirname(path),
    __filename: path,
  };
  const placed = text.replace(/^#!.*/, '').replaceAll(META, '__sallyport_$1');
  const used = Object.entries(values).filter(
    ([name]) =>
      new RegExp(`\\b${name}\\b`).test(placed) &&
      !new RegExp(`\\b(?:const|let|var)\\s+(?:\\{[^}]*)?${name}\\b`).test(placed),
  );
  return used.map(([name, value]) => `var ${name} = ${JSON.stringify(value)}; `).join('') + placed;
}
