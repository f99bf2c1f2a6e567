// All rows of the stage `tls`.
import { hostRows } from './rows-hosts.ts';
import type { TlsRow } from './tls-script.ts';

export const allTlsRows: readonly TlsRow[] = [...hostRows];
