// Decides from what the origin has seen and what the proxy has recorded whether a client is green. Pure.

/** One request at the origin. */
export type SeenRequest = {
  readonly host: string;
  readonly path: string;
  readonly httpVersion: string;
  readonly credential: 'right' | 'wrong' | 'none';
};

/** One record of the proxy: about a request, a refusal or a handshake. */
export type ProxyRecord = {
  readonly injected?: readonly string[] | undefined;
  readonly status?: number | undefined;
};

export type Ending =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly afterSeconds: number };

export type Observation = {
  readonly ending: Ending;
  readonly output: string;
  readonly seen: readonly SeenRequest[];
  /** Undefined: not collected. */
  readonly records?: readonly ProxyRecord[] | undefined;
};

export type Expectation = { readonly requests?: number | undefined; readonly streams?: boolean | undefined };

/** The events are sent within 400 ms. On a busy machine a client reads the first ones late. */
const MIN_SPREAD_MS = 150;

/** Why a client is not green; undefined if it is. */
export function findReason(expected: Expectation, observed: Observation): string | undefined {
  const { ending, seen, records, output } = observed;
  const right = seen.filter(({ credential }) => credential === 'right').length;
  const wrong = seen.length - right;
  if (ending.kind === 'killed') return `killed after ${ending.afterSeconds} s${lastWords(output)}`;
  if (wrong > 0) return `${wrong} of ${seen.length} requests had no valid credential`;
  if (ending.code !== 0) return `ended with ${ending.code}${lastWords(output)}`;
  if (right === 0) return 'no request has reached the origin';
  if (expected.requests !== undefined && right !== expected.requests)
    return `the origin saw the credential ${right} times, the client asked ${expected.requests} times`;
  const recorded = records?.filter(isForwarded).length;
  if (recorded !== undefined && recorded !== right)
    return `the origin saw the credential ${right} times, the proxy recorded ${recorded} requests`;
  return expected.streams === true ? findDelay(output) : undefined;
}

/** It went to the origin with the credential, also if the client did not wait for the end of the response. */
function isForwarded({ injected = [], status }: ProxyRecord): boolean {
  return injected.length > 0 && status !== undefined;
}

function findDelay(output: string): string | undefined {
  const spread = spreadOf(output);
  if (spread === undefined) return 'the client has not reported the times of a stream';
  return spread < MIN_SPREAD_MS
    ? `the events arrived within ${spread} ms: the stream was buffered`
    : undefined;
}

/** The time that a client has measured between the first and the last event. */
export function spreadOf(output: string): number | undefined {
  const found = /^spread (\d+(?:\.\d+)?)$/m.exec(output)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** The end of what the program has said, on one line. */
export function lastWords(output: string): string {
  const words = output.replaceAll(/\s+/g, ' ').trim().slice(-160);
  return words === '' ? '' : `: ${words}`;
}

/** A hang that nothing explains: killed, and the program has said nothing. */
export function isSilentHang({ ending, output }: Observation): boolean {
  return ending.kind === 'killed' && output.trim() === '';
}

export type Use = 'yes' | 'no' | 'unknown';

/** Whether the client has connected to the proxy, and whether it then trusted the certificate of the proxy. */
export function usesOf({ seen, records }: Observation): { readonly proxy: Use; readonly ca: Use } {
  const hasPassed = seen.some(({ credential }) => credential === 'right');
  if (hasPassed) return { proxy: 'yes', ca: 'yes' };
  if (records === undefined || records.length === 0) return { proxy: 'no', ca: 'unknown' };
  return { proxy: 'yes', ca: 'no' };
}

/** The versions of HTTP at the origin, `2` and `1.1`. */
export function httpVersions(seen: readonly SeenRequest[]): string {
  const versions = seen.map(({ httpVersion }) => (httpVersion === '2.0' ? '2' : httpVersion));
  return [...new Set(versions)].toSorted().toReversed().join(', ');
}

export type Total = {
  readonly ran: number;
  readonly green: number;
  readonly cured: number;
  readonly skipped: number;
  /** Named, because they make the suite fail. */
  readonly greenWithoutRun: readonly string[];
  readonly silent: readonly string[];
  readonly withoutToken: readonly string[];
};

export const MIN_RAN = 90;
const MIN_GREEN_SHARE = 0.85;

/** What the whole suite must hold; empty if it does. */
export function findFailures(total: Total): readonly string[] {
  const { ran, green, greenWithoutRun, silent, withoutToken } = total;
  const list = (text: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`${text}: ${names.join(', ')}`];
  return [
    ...(ran < MIN_RAN ? [`only ${ran} clients ran, at least ${MIN_RAN} must`] : []),
    ...(ran > 0 && green / ran < MIN_GREEN_SHARE
      ? [`only ${green} of ${ran} clients are green with what run sets, at least 85 % must be`]
      : []),
    ...list('green without run, so the suite shows nothing about them', greenWithoutRun),
    ...list('killed without a message', silent),
    ...list('not green behind proxy with a token', withoutToken),
  ];
}
