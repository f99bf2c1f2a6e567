// Bundles the files of a deployment for its workers: TypeScript of any kind, aliases and missing extensions included, in one
// build, so that what graphs, handler and application share is one module. The output is in the data directory, because the
// directory of the deployment may be read-only.
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { DeploymentToLoad, ModuleExport } from '../../../agent-worker/protocol/messages.ts';
import type { Issue, Loc, Parsed } from '../../../base/schema.ts';
import { type BuildOptions, buildFiles, type Message } from './esbuild.ts';
import type { GraphFile } from './graph-file.ts';
import type { SourceExport } from './source-export.ts';
import { sourcePlugin } from './source-plugin.ts';

export type Bundle = { readonly load: DeploymentToLoad; readonly warnings: readonly string[] };

/** One export that the configuration names, and the key that names it. */
type Named = { readonly loc: Loc; readonly source: SourceExport; readonly file: string };

/** An issue has the key, the file and the line. */
export async function bundleDeployment(
  file: Pick<GraphFile, 'graphs' | 'auth' | 'app'>,
  { root, output }: { readonly root: string; readonly output: string },
): Promise<Parsed<Bundle>> {
  const named = namedExports(file, root);
  const absent = (await Promise.all(named.map(findAbsent))).filter((issue) => issue !== undefined);
  if (absent.length > 0) return { ok: false, issues: absent };
  const files = [...new Set(named.map((one) => one.file))];
  const entryPoints = files.map((path, at) => ({ in: path, out: nameOf(at) }));
  const built = await buildFiles({ ...optionsOf(root), entryPoints, outdir: output });
  if ('errors' in built) return { ok: false, issues: await locateErrors(named, root, built.errors) };
  const toModule = (one: Named | undefined): ModuleExport | undefined =>
    one && {
      file: join(output, `${nameOf(files.indexOf(one.file))}.js`),
      name: one.source.name,
      source: one.source.text,
    };
  const graphs = named.filter(({ loc }) => loc[0] === 'graphs');
  const [auth, app] = ['auth', 'http'].map((key) => toModule(named.find(({ loc }) => loc[0] === key)));
  return {
    ok: true,
    value: {
      load: {
        root,
        // Each of them has a module.
        graphs: Object.fromEntries(graphs.map((one) => [String(one.loc[1]), toModule(one) as ModuleExport])),
        ...(auth && { auth }),
        ...(app && { app }),
      },
      warnings: built.warnings.map(toText),
    },
  };
}

const nameOf = (at: number): string => `entry-${at}`;

function namedExports(
  { graphs, auth, app }: Pick<GraphFile, 'graphs' | 'auth' | 'app'>,
  root: string,
): readonly Named[] {
  const toNamed = (loc: Loc, source: SourceExport): Named => ({
    loc,
    source,
    file: resolve(root, source.file),
  });
  return [
    ...Array.from(graphs, ([id, { source }]) => toNamed(['graphs', id], source)),
    ...(auth === undefined ? [] : [toNamed(['auth', 'path'], auth.source)]),
    ...(app === undefined ? [] : [toNamed(['http', 'app'], app)]),
  ];
}

async function findAbsent({ loc, source, file }: Named): Promise<Issue | undefined> {
  try {
    await access(file);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT'
        ? 'does not exist: correct the path, which is relative to the configuration file'
        : `cannot be read: ${code}`;
    return { loc, msg: `${source.file} ${reason}`, type: 'value_error' };
  }
}

// CommonJS files call require() for packages, which ES modules do not have.
const REQUIRE = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);";

function optionsOf(root: string): BuildOptions {
  return {
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Those of Node, without `module`, which is of bundlers.
    conditions: [],
    mainFields: ['main'],
    sourcemap: 'linked',
    // Names of functions and classes are part of what graphs show.
    keepNames: true,
    chunkNames: 'chunk-[hash]',
    banner: { js: REQUIRE },
    plugins: [sourcePlugin],
  };
}

/** A file may belong to several keys: which, its build alone shows. */
async function locateErrors(
  named: readonly Named[],
  root: string,
  all: readonly Message[],
): Promise<readonly Issue[]> {
  const issues = new Map<string, Issue>();
  for (const { loc, file } of named) {
    const built = await buildFiles({ ...optionsOf(root), entryPoints: [file], outdir: root, write: false });
    for (const message of 'errors' in built ? built.errors : []) {
      const text = toText(message);
      if (!issues.has(text)) issues.set(text, { loc, msg: text, type: 'value_error' });
    }
  }
  if (issues.size > 0) return [...issues.values()];
  return all.map((message) => ({ loc: [], msg: toText(message), type: 'value_error' }));
}

function toText({ text, location }: Message): string {
  return location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`;
}
