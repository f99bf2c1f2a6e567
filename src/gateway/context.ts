// What the connections of one gateway share.
import type { Log } from '../base/log.ts';
import type { HeadLimits } from '../http1/head-parser.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayLimits } from './limits.ts';
import type { GatewayRecord } from './record.ts';
import type { Refusal } from './refusal.ts';

export type GatewayContext = {
  readonly limits: GatewayLimits;
  readonly headLimits: HeadLimits;
  readonly log: Log;
  /** `exchange`: undefined where no request was read. */
  refusalBytes(refusal: Refusal, isLast: boolean, exchange?: Pick<Exchange, 'plan' | 'target'>): Buffer;
  isDraining(): boolean;
  /** Finds the target, asks whether the client may use it, and returns the head that is sent. Never rejects. */
  decide(exchange: Exchange, client: Client): Promise<Buffer | Refusal>;
  record(record: GatewayRecord): void;
};

export type Client = {
  readonly remoteAddress: string | undefined;
  readonly scheme: 'http' | 'https';
  /** Ends whatever is going on. */
  abort(): void;
  /** Asks the client of an upgraded connection to connect again. */
  drain(): void;
};
