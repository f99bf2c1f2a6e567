// Every row of the stage `message`, one array for each file.
import type { MessageRow } from './message-script.ts';
import { bodyRows } from './rows-bodies.ts';
import { chunkRows } from './rows-chunks.ts';
import { claimRows } from './rows-claims.ts';
import { fieldRows } from './rows-fields.ts';
import { framingRows } from './rows-framing.ts';
import { hostRows } from './rows-hosts.ts';
import { http11ProbeRows } from './rows-http11probe.ts';
import { lineRows } from './rows-lines.ts';
import { llhttpRows } from './rows-llhttp.ts';
import { methodRows } from './rows-methods.ts';
import { pathRows } from './rows-paths.ts';
import { targetRows } from './rows-targets.ts';

export const messageRows: readonly MessageRow[] = [
  ...framingRows,
  ...lineRows,
  ...chunkRows,
  ...bodyRows,
  ...hostRows,
  ...fieldRows,
  ...claimRows,
  ...methodRows,
  ...http11ProbeRows,
  ...llhttpRows,
  ...pathRows,
  ...targetRows,
];
