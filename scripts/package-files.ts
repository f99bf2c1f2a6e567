// Packages that several programs of the bundle load when they first need them: one file of the bundle for each, in place of a
// copy in every program. A dynamic import names it.
import { fileURLToPath } from 'node:url';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

/** Large, and imported dynamically alone. */
const PACKAGES: readonly string[] = ['undici', 'libsodium-wrappers'];

/** Replaces the dynamic imports of the packages by imports of their files. */
export const packageImports: Plugin = {
  name: 'package-imports',
  setup({ onResolve }) {
    onResolve({ filter: new RegExp(`^(?:${PACKAGES.join('|')})$`) }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path: `./${path}.js`, external: true } : undefined,
    );
  },
};

/** As the code imports a package that is not bundled: one that is CommonJS is the default export. */
export async function bundlePackages(common: BuildOptions): Promise<Metafile> {
  const resolved = PACKAGES.map((name) => [name, fileURLToPath(import.meta.resolve(name))]);
  const entryPoints = Object.fromEntries(resolved);
  const { metafile } = await build({ ...common, splitting: false, entryPoints, metafile: true });
  return metafile;
}
