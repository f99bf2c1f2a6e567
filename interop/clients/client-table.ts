// All clients of the suite, in the order in which they run.
import type { ClientRow } from './client-row.ts';
import { compiledRows } from './rows/compiled-rows.ts';
import { javascriptRows } from './rows/javascript-rows.ts';
import { packageRows } from './rows/package-rows.ts';
import { programRows } from './rows/program-rows.ts';
import { pythonRows } from './rows/python-rows.ts';
import { scriptRows } from './rows/script-rows.ts';

export const clientTable: readonly ClientRow[] = [
  ...programRows,
  ...packageRows,
  ...javascriptRows,
  ...pythonRows,
  ...compiledRows,
  ...scriptRows,
];
