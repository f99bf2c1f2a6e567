// Every row of the stage `connect`.
import type { ConnectRow } from './connect-script.ts';
import { agreementRows } from './rows-agreement.ts';
import { authorityRows } from './rows-authority.ts';
import { behindConnectRows } from './rows-after-connect.ts';
import { coverRows } from './rows-cover.ts';
import { orderRows } from './rows-order.ts';
import { reachRows } from './rows-reach.ts';
import { spellingRows } from './rows-spellings.ts';
import { wildcardRows } from './rows-wildcards.ts';

export const connectRows: readonly ConnectRow[] = [
  ...behindConnectRows,
  ...authorityRows,
  ...agreementRows,
  ...spellingRows,
  ...coverRows,
  ...wildcardRows,
  ...orderRows,
  ...reachRows,
];
