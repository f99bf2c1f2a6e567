// Every row of the stage `load`.
import type { LoadRow } from './load-script.ts';
import { endRows } from './rows-ends.ts';
import { floodRows } from './rows-floods.ts';
import { slowRows } from './rows-slow.ts';
import { workRows } from './rows-work.ts';

export const loadRows: readonly LoadRow[] = [...slowRows, ...floodRows, ...workRows, ...endRows];
