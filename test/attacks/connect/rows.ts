// Every row of the stage `connect`.
import type { ConnectRow } from './connect-script.ts';
import { authorityRows } from './rows-authority.ts';
import { behindConnectRows } from './rows-behind-connect.ts';
import { nameRows } from './rows-names.ts';

export const connectRows: readonly ConnectRow[] = [...behindConnectRows, ...authorityRows, ...nameRows];
