// What a deployment's sources may look like, and what stops the start: the bundle is loaded by Node, as a worker does it.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleDeployment } from '../../../../src/platform/agent-server/configuration/bundle.ts';
import {
  parseSource,
  type SourceExport,
} from '../../../../src/platform/agent-server/configuration/source-export.ts';

let root: string;
let output: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sallyport-sources-'));
  output = join(root, 'data', 'bundle');
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), text);
  }
}

function sourceOf(text: string): SourceExport {
  const source = parseSource(text);
  if (typeof source === 'string') throw new Error(source);
  return source;
}

async function bundle(graphs: Readonly<Record<string, string>>, more: { auth?: string; app?: string } = {}) {
  return bundleDeployment(
    {
      graphs: new Map(
        Object.entries(graphs).map(([id, text]) => [id, { source: sourceOf(text), description: null }]),
      ),
      auth: more.auth === undefined ? undefined : { source: sourceOf(more.auth), disableStudio: false },
      app: more.app === undefined ? undefined : sourceOf(more.app),
    },
    { root, output },
  );
}

// oxlint-disable-next-line typescript/no-explicit-any
async function load(graphs: Readonly<Record<string, string>>, more = {}): Promise<any> {
  const bundled = await bundle(graphs, more);
  if (!bundled.ok) throw new Error(JSON.stringify(bundled.issues));
  const { graphs: modules, auth } = bundled.value.load;
  const loaded = await Promise.all(
    Object.entries(modules).map(async ([id, { file }]) => [id, await import(pathToFileURL(file).href)]),
  );
  const handler = auth && (await import(pathToFileURL(auth.file).href));
  return { ...Object.fromEntries(loaded), auth: handler };
}

const PACKAGE = JSON.stringify({
  name: 'p',
  type: 'module',
  exports: { import: './i.js', require: './r.cjs' },
});

describe('a source', () => {
  it('may leave out extensions, name .js for .ts, and have aliases, enums and JSX', async () => {
    await write({
      'tsconfig.json': '{"compilerOptions":{"paths":{"@lib/*":["./lib/*"]},"jsx":"react","jsxFactory":"h"}}',
      'src/agent.ts': `
        import { a } from './a'; import { b } from './b.js'; import { c } from '@lib/c';
        import data from './data.json';
        enum Kind { One = 'one' }
        export const graph: string[] = [a, b, c, Kind.One, data.d];`,
      'src/a.ts': "export const a: string = 'a';",
      'src/b.ts': "import type { T } from './a'; export const b: T = 'b';",
      'lib/c.tsx': 'const h = (name: string) => name; export const c = <c />;',
      'src/data.json': '{"d":"d"}',
    });
    expect((await load({ agent: './src/agent.ts:graph' })).agent.graph).toEqual(['a', 'b', 'c', 'one', 'd']);
  });

  it('shares its modules with other graphs and with the handler', async () => {
    await write({
      'shared.ts': 'export const shared = {};',
      'a.ts': "export { shared } from './shared';",
      'b.ts': "export { shared } from './shared';",
      'auth.ts': "export { shared } from './shared'; export const auth = 1;",
    });
    const loaded = await load({ a: './a.ts:shared', b: './b.ts:shared' }, { auth: './auth.ts:auth' });
    expect(loaded.a.shared).toBe(loaded.b.shared);
    expect(loaded.auth.shared).toBe(loaded.a.shared);
  });

  it('finds packages from its own folder, also in a repository of several', async () => {
    const versions = { 'node_modules/p': 'root', 'packages/b/node_modules/p': 'of b' };
    for (const [folder, text] of Object.entries(versions))
      await write({
        [`${folder}/package.json`]: PACKAGE,
        [`${folder}/i.js`]: `export default ${JSON.stringify(`${text}, imported`)}`,
        [`${folder}/r.cjs`]: `module.exports = ${JSON.stringify(`${text}, required`)}`,
      });
    await write({
      'a.ts': "import p from 'p'; import { b } from 'b'; export const graph = [p, b];",
      'packages/b/package.json': '{"name":"b","exports":"./src/b.ts"}',
      'packages/b/src/b.ts': "import p from 'p'; enum E { B } export const b: string = p; export { E };",
      'c.cjs': "exports.graph = require('p');",
      'late.ts': "export const graph = async () => (await import('p')).default;",
    });
    await symlink('../packages/b', join(root, 'node_modules/b'));
    const graphs = { a: './a.ts:graph', c: './c.cjs:graph', late: './late.ts:graph' };
    const { a, c, late } = await load(graphs);
    expect(a.graph).toEqual(['root, imported', 'of b, imported']);
    expect(c.default.graph).toBe('root, required');
    expect(await late.graph()).toBe('root, imported');
  });

  it('knows its own place, also where it names it as CommonJS did', async () => {
    await write({
      'src/a.ts': `
        import { createRequire } from 'node:module'; import { dirname } from 'node:path'; import { fileURLToPath } from 'node:url';
        const require = createRequire(import.meta.url);
        const __dirname = dirname(fileURLToPath(import.meta.url));
        export const graph = [import.meta.dirname, import.meta.filename, __dirname, require('./data.json')];`,
      'src/data.json': '{}',
      'src/b.cjs': '#!/usr/bin/env node\nexports.graph = [__dirname, __filename];',
    });
    const { a, b } = await load({ a: './src/a.ts:graph', b: './src/b.cjs:graph' });
    const src = join(root, 'src');
    expect(a.graph).toEqual([src, join(src, 'a.ts'), src, {}]);
    expect(b.default.graph).toEqual([src, join(src, 'b.cjs')]);
  });

  it('may ask for a package that is optional', async () => {
    await write({
      'a.ts': "export const graph = await import('absent').then(() => 'there', () => 'absent');",
    });
    expect((await load({ a: './a.ts:graph' })).a.graph).toBe('absent');
  });
});

describe('the start is stopped, with key, file and line, by', () => {
  it.each([
    ['a syntax error', { 'a.ts': 'export const graph =\n  = 1;' }, 'a.ts:2:3: Unexpected "="'],
    [
      'a file that is not there',
      {},
      './a.ts does not exist: correct the path, which is relative to the configuration file',
    ],
    [
      'an import of a file that is not there',
      { 'a.ts': "\nimport './b';" },
      'a.ts:2:8: Could not resolve "./b"',
    ],
    [
      'a package that is not installed',
      { 'a.ts': "import 'absent';" },
      'a.ts:1:8: "absent" is not installed, and no alias of tsconfig.json: install the dependencies',
    ],
  ])('%s', async (_, files, msg) => {
    await write({ 'ok.ts': 'export const graph = 1;', ...files });
    const bundled = await bundle({ ok: './ok.ts:graph', agent: './a.ts:graph' });
    expect(bundled).toEqual({ ok: false, issues: [{ loc: ['graphs', 'agent'], msg, type: 'value_error' }] });
  });
});
