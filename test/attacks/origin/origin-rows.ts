// Every row of stage `origin`.
import type { OriginRow } from './origin-script.ts';
import { bodyRows } from './rows-bodies.ts';
import { bombRows } from './rows-bombs.ts';
import { chunkRows } from './rows-chunks.ts';
import { cutRows } from './rows-cuts.ts';
import { echoRows } from './rows-echoes.ts';
import { elsewhereRows } from './rows-elsewhere.ts';
import { framingRows } from './rows-framing.ts';
import { interimRows } from './rows-interim.ts';
import { queueRows } from './rows-queue.ts';
import { splittingRows } from './rows-splitting.ts';
import { uncausedRows } from './rows-uncaused.ts';

export const originRows: readonly OriginRow[] = [
  ...splittingRows,
  ...framingRows,
  ...chunkRows,
  ...queueRows,
  ...interimRows,
  ...uncausedRows,
  ...bodyRows,
  ...bombRows,
  ...cutRows,
  ...echoRows,
  ...elsewhereRows,
];
