// Every row of the stage `connect`.
import type { ConnectRow } from './connect-script.ts';
import { behindConnectRows } from './rows-behind-connect.ts';

export const connectRows: readonly ConnectRow[] = [...behindConnectRows];
