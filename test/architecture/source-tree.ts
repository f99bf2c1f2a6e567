// The sources as the architecture tests see them: a path, a text, and what the text imports. Types count as
// imports too: a circle of types is a circle of ideas.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export type Import = { readonly to: string; readonly form: 'static' | 'dynamic' };
export type SourceFile = {
  /** Relative to the project, with forward slashes: `src/proxy/tunnel/connect.ts`. */
  readonly path: string;
  readonly text: string;
  /** Files under src by path; packages, builtins and whatever lies outside src by specifier. */
  readonly imports: readonly Import[];
};

const root: string = join(import.meta.dirname, '..', '..');

export function readSources(pattern: string): readonly SourceFile[] {
  const paths = globSync(pattern, { cwd: root }).toSorted();
  return paths.map((path) => toSourceFile(path, readFileSync(join(root, path), 'utf8')));
}

export function toSourceFile(path: string, text: string): SourceFile {
  const code = text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  const imports: Import[] = [];
  for (const [, from] of code.matchAll(/^(?:import|export)\b[^'";]*?\bfrom\s+'([^']+)'/gm)) {
    imports.push({ to: resolve(path, from), form: 'static' });
  }
  for (const [, bare] of code.matchAll(/^import\s+'([^']+)'/gm)) {
    imports.push({ to: resolve(path, bare), form: 'static' });
  }
  for (const [, lazy] of code.matchAll(/\bimport\(\s*'([^']+)'/g)) {
    imports.push({ to: resolve(path, lazy), form: 'dynamic' });
  }
  return { path, text, imports };
}

/** `node-forge/lib/asn1.js` is node-forge. */
export function packageOf(specifier: string): string {
  const [scope = '', name = ''] = specifier.split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

function resolve(from: string, specifier: string | undefined): string {
  if (specifier === undefined) return '';
  if (!specifier.startsWith('.')) return specifier;
  const own = normalize(join(dirname(from), specifier));
  return own.startsWith('src/') ? own : specifier;
}
