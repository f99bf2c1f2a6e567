// What a process counts of its data path, over all of its sandboxes: always on, in fixed arrays, by closed lists of labels. Each
// record of an exchange is counted here once, so that metrics and records agree.
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Durations, NamedCounts } from '../base/metrics/counts.ts';
import { CallbackCounters } from '../callback/callback-counters.ts';
import { type ExchangeRecord, outcomes } from './record.ts';
import { catalogue } from './refusal-catalogue.ts';

/** How a request came: `tunnel` is a CONNECT that was relayed unread, or would have been. */
export const protocols = ['http1', 'h2', 'tunnel'] as const;
export const refusalCodes: readonly string[] = Object.keys(catalogue);
/** Why a request failed without a refusal of the catalogue. */
export const failureReasons = [
  'alpn_unsupported',
  'client_distrusts_ca',
  'client_flood',
  'client_gone',
  'client_hello_malformed',
  'client_protocol_error',
  'client_stalled',
  'handshake_aborted',
  'handshake_failed',
  'handshake_timeout',
  'not_tls_nor_http',
  'sni_mismatch',
  'sniff_timeout',
  'upstream_idle',
  'upstream_reset',
  'upstream_truncated',
  'other',
] as const;
export const dialResults = ['established', 'failed', 'aborted'] as const;

/** What has no labels, with its place in the array. */
export const Total = {
  bytesUp: 0,
  bytesDown: 1,
  injections: 2,
  newUpstreams: 3,
  reusedUpstreams: 4,
  fullHandshakes: 5,
  resumedHandshakes: 6,
  tunnelsOpened: 7,
  tunnelsEnded: 8,
  upgradesOpened: 9,
  upgradesEnded: 10,
  leavesIssued: 11,
} as const;
export type Total = (typeof Total)[keyof typeof Total];

/** Rules and callbacks of all tenants that have a label of their own. */
const MAX_NAMES = 256;
/** In seconds. */
const BOUNDS: readonly number[] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

const outcomeNumbers = numbersOf(outcomes);
const refusalNumbers = numbersOf(refusalCodes);
const failureNumbers = numbersOf(failureReasons);

export class ProxyCounters {
  readonly totals: Float64Array = new Float64Array(Object.keys(Total).length);
  /** By outcome, and for each by protocol. */
  readonly requests: Float64Array = new Float64Array(outcomes.length * protocols.length);
  readonly refusals: Float64Array = new Float64Array(refusalCodes.length);
  readonly failures: Float64Array = new Float64Array(failureReasons.length);
  readonly dials: Float64Array = new Float64Array(dialResults.length);
  /** By the name of the rule and the outcome. */
  readonly rules: NamedCounts = new NamedCounts(MAX_NAMES, outcomes.length);
  readonly callbackRequests: NamedCounts = new NamedCounts(MAX_NAMES, outcomes.length);
  readonly callbacks: CallbackCounters = new CallbackCounters();
  /** Of the requests whose whole response came from an upstream. */
  readonly requestSeconds: Durations = new Durations(BOUNDS);
  /** Of the connections to upstreams that were established, TLS included. */
  readonly dialSeconds: Durations = new Durations(BOUNDS);

  add(total: Total, amount: number = 1): void {
    add(this.totals, total, amount);
  }

  countExchange(record: ExchangeRecord, durationMs: number): void {
    const { outcome = 'failed', reason, rule, callback, upstream_reused: isReused } = record;
    const column = outcomeNumbers.get(outcome) ?? 0;
    add(this.requests, column * protocols.length + protocolNumber(record), 1);
    if (rule !== undefined) this.rules.add(rule, column);
    if (callback !== undefined) this.callbackRequests.add(callback, column);
    if (outcome === 'refused' || outcome === 'failed') this.#countReason(reason);
    if (outcome === 'injected' || outcome === 'forwarded') this.requestSeconds.add(durationMs / 1000);
    if (record.injected !== undefined) this.add(Total.injections);
    if (isReused !== undefined) this.add(isReused ? Total.reusedUpstreams : Total.newUpstreams);
    this.add(Total.bytesUp, record.bytes_up);
    this.add(Total.bytesDown, record.bytes_down);
  }

  /** `socket` is undefined where none was established. */
  countDial(socket: Socket | TLSSocket | undefined, isAborted: boolean, durationMs: number): void {
    if (socket === undefined) return add(this.dials, isAborted ? 2 : 1, 1);
    add(this.dials, 0, 1);
    this.dialSeconds.add(durationMs / 1000);
    if ('isSessionReused' in socket)
      this.add(socket.isSessionReused() ? Total.resumedHandshakes : Total.fullHandshakes);
  }

  #countReason(reason: string | undefined = 'other'): void {
    const refusal = refusalNumbers.get(reason);
    if (refusal !== undefined) add(this.refusals, refusal, 1);
    else add(this.failures, failureNumbers.get(reason) ?? failureReasons.length - 1, 1);
  }
}

function add(values: Float64Array, at: number, amount: number): void {
  values[at] = (values[at] ?? 0) + amount;
}

function protocolNumber({ scheme, protocol }: ExchangeRecord): number {
  if (scheme === 'tunnel') return 2;
  return protocol === 'h2' ? 1 : 0;
}

function numbersOf(names: readonly string[]): ReadonlyMap<string, number> {
  return new Map(names.map((name, number) => [name, number]));
}
