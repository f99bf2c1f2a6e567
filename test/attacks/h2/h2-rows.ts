// All rows of the stage `h2`.
import type { H2Row } from './h2-script.ts';
import { blockRows } from './rows-blocks.ts';
import { floodRows } from './rows-floods.ts';
import { h2HostRows } from './rows-hosts.ts';
import { requestRows } from './rows-requests.ts';

export const h2Rows: readonly H2Row[] = [...requestRows, ...floodRows, ...blockRows, ...h2HostRows];
