// A plugin of esbuild that keeps out of the bundle, or out of its start, what packages load and the product does not use.
import { join } from 'node:path';
import type { Plugin } from 'esbuild';

type Replacement = {
  /** The import, and the path of the file that has it. */
  readonly of: RegExp;
  readonly by: RegExp;
  readonly contents: string;
};

const UNUSED = (use: string): string =>
  `module.exports = class { constructor() { throw new Error('the bundle has no ${use}'); } };`;

const replacements: readonly Replacement[] = [
  // Where pino writes unless it is given a stream, as here.
  { of: /^sonic-boom$/, by: /\/pino\//, contents: UNUSED('sonic-boom: the log writes to a sink') },
  { of: /^thread-stream$/, by: /\/pino\//, contents: UNUSED('thread-stream: the log has no transport') },
  { of: /^worker_threads$/, by: /\/pino\//, contents: 'module.exports = { isMainThread: true };' },
  // The messages of zod in 50 languages; English is imported by itself.
  { of: /\/locales\/index\.js$/, by: /\/zod\//, contents: 'export {};' },
  // The public suffix list is needed by the first wildcard.
  {
    of: /^tldts$/,
    by: /\/public-suffix\.ts$/,
    contents: `
      let tldts;
      export const parse = (...given) => (tldts ??= require('tldts')).parse(...given);
    `,
  },
];

export const unusedParts: Plugin = {
  name: 'unused-parts',
  setup(build) {
    build.onResolve({ filter: /./ }, ({ path, importer }) => {
      const at = replacements.findIndex(({ of, by }) => of.test(path) && by.test(importer));
      return at === -1 ? undefined : { path: `${path}#${at}`, namespace: 'unused-parts', pluginData: at };
    });
    build.onLoad({ filter: /./, namespace: 'unused-parts' }, ({ pluginData }) => ({
      contents: replacements[Number(pluginData)]?.contents ?? '',
      resolveDir: join(import.meta.dirname, '..'),
    }));
  },
};
