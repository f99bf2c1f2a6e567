// Every row of the stage `message`; a further array of rows is one more line here.
import type { MessageRow } from './message-script.ts';
import { framingRows } from './rows-framing.ts';

export const messageRows: readonly MessageRow[] = [...framingRows];
