// Every row of stage `callback`.
import type { CallbackRow } from './callback-script.ts';
import { cacheRows } from './rows-cache.ts';
import { headerRows } from './rows-headers.ts';
import { raceRows } from './rows-races.ts';
import { reachRows } from './rows-reach.ts';
import { replyRows } from './rows-replies.ts';

export const callbackRows: readonly CallbackRow[] = [
  ...reachRows,
  ...replyRows,
  ...headerRows,
  ...cacheRows,
  ...raceRows,
];
