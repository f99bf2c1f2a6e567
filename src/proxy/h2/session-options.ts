// What node:http2 allows the client of a session, and what we tell the client of it.
import type { performServerHandshake } from 'node:http2';
import type { Limits } from '../limits.ts';

/** A legitimate burst of cancelled requests: twice all streams of a connection. */
export const RESET_BURST_FACTOR = 2;
/**
 * node:http2 counts all resets. Many clients reset each stream whose response has as many bytes as were announced and whose
 * end is in a later frame. The gauge does not count those, so the limit of node:http2 is higher.
 */
const MAX_RESET_BURST = 10_000;
const MAX_RESETS_PER_SECOND = 10_000;
const MAX_SESSION_MB = 10;
export const MAX_REFUSED_STREAMS = 100;

export function sessionOptions(limits: Limits): Parameters<typeof performServerHandshake>[1] {
  return {
    maxSessionMemory: MAX_SESSION_MB,
    // Above our own limit: streams that node:http2 refuses get no response and no record.
    maxHeaderListPairs: 10 * limits.maxFields,
    maxSessionRejectedStreams: MAX_REFUSED_STREAMS,
    maxSessionInvalidFrames: MAX_REFUSED_STREAMS,
    streamResetBurst: MAX_RESET_BURST,
    streamResetRate: MAX_RESETS_PER_SECOND,
    strictSingleValueFields: false,
    settings: {
      enableConnectProtocol: false,
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: limits.maxRequestHeadBytes,
    },
  };
}
