// All rows of the stage `tls`.
import { clientRows } from './rows-clients.ts';
import { helloRows } from './rows-hellos.ts';
import { hostRows } from './rows-hosts.ts';
import type { TlsRow } from './tls-script.ts';

export const allTlsRows: readonly TlsRow[] = [...hostRows, ...helloRows, ...clientRows];
