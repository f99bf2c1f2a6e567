// Where packages of the deployment are: this program's own folder has other ones, or none.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Resolve } from './library.ts';

/** As an `import` in a file of that folder finds them. */
export function createResolve(folder: string): Resolve {
  const { resolve } = createRequire(`${folder}/`) as { resolve: ResolveWithConditions };
  const options = { conditions: new Set(['node', 'import']) };
  return (specifier) => pathToFileURL(resolve(specifier, options)).href;
}

type ResolveWithConditions = (specifier: string, options: { readonly conditions: Set<string> }) => string;
