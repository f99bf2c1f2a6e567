// Every row of the stage `connect`.
import type { ConnectRow } from './connect-script.ts';
import { authorityRows } from './rows-authority.ts';
import { behindConnectRows } from './rows-behind-connect.ts';
import { coverRows } from './rows-cover.ts';
import { nameRows } from './rows-names.ts';
import { reachRows } from './rows-reach.ts';

export const connectRows: readonly ConnectRow[] = [
  ...behindConnectRows,
  ...authorityRows,
  ...nameRows,
  ...coverRows,
  ...reachRows,
];
