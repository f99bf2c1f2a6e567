// The record of one request: what was asked of which target and how it ended. Never a path, a query or a field value.
import type { RefusalCode } from './refusal.ts';

export type GatewayRecord = {
  /** Undefined for what is no request. */
  readonly method: string | undefined;
  /** The name that `findTarget` gave. */
  readonly target: string | undefined;
  /** Of the response; undefined when the client left before one began. */
  readonly status: number | undefined;
  /** Of a response of the gateway itself. */
  readonly refusal: RefusalCode | undefined;
  /**
   * `complete`: the response was sent to its end, or both sides of an upgraded connection ended. `cut`: the target or a timeout
   * ended it before. `left`: the client did.
   */
  readonly end: 'complete' | 'cut' | 'left';
  /** Bytes of the contents, without heads and chunk framing; of an upgraded connection all bytes after the heads. */
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly durationMs: number;
};

/** Of bytes that were refused before there was a request. */
export function recordOfNoRequest(status: number, refusal: RefusalCode): GatewayRecord {
  const nothing = { method: undefined, target: undefined, bytesUp: 0, bytesDown: 0, durationMs: 0 };
  return { ...nothing, status, refusal, end: 'complete' };
}
