// The options of `npm run clients`.
import { parseArgs } from 'node:util';
import type { ClientRow } from './client-row.ts';

export type Options = {
  readonly rows: readonly ClientRow[];
  /** All rows: the document is written and the suite must hold. */
  readonly isWhole: boolean;
  readonly isList: boolean;
  readonly installsOnly: boolean;
  /** In the namespaces that the first process has made. */
  readonly isInside: boolean;
  readonly isVerbose: boolean;
};

/** Throws an Error that names the option. */
export function parseOptions(args: readonly string[], table: readonly ClientRow[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      list: { type: 'boolean' },
      install: { type: 'boolean' },
      inside: { type: 'boolean' },
      verbose: { type: 'boolean' },
    },
  });
  const names = values.only?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => !table.some((row) => isNamed(row, name)));
  if (unknown !== undefined)
    throw new Error(`--only: ${unknown} is neither a client nor a group: see npm run clients -- --list`);
  return {
    rows: names === undefined ? table : table.filter((row) => names.some((name) => isNamed(row, name))),
    isWhole: names === undefined,
    isList: values.list === true,
    installsOnly: values.install === true,
    isInside: values.inside === true,
    isVerbose: values.verbose === true,
  };
}

function isNamed(row: ClientRow, name: string): boolean {
  return row.name === name || row.group === name;
}
