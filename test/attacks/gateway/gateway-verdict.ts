// Compares a row of class F with what was observed at a reverse proxy. Field lines are compared as names and values: node:http
// writes them anew. Interim responses are left out: the gateway sends its own 100. Pure.
import type { OriginRequest } from '../../support/recording-origin.ts';
import { fill, type MessageObservation } from '../message/message-driver.ts';
import type { ExpectedArrival, MessageExpectation, MessageRow } from '../message/message-script.ts';

type Values = Readonly<Record<string, string>>;

export type GatewayViolation = { readonly kind: 'security' | 'protocol'; readonly text: string };

/** `security`: a target got what it must not get, or a client got the response of another request. A refusal is none. */
export function gatewayViolations(
  row: MessageRow,
  seen: MessageObservation,
  values: Values,
): readonly GatewayViolation[] {
  const security = [...arrivalViolations(row, seen, values), ...crossedResponses(row, seen, values)];
  const protocol = [...absences(row, seen, values), ...protocolViolations(row, seen)];
  return [
    ...security.map((text) => ({ kind: 'security', text }) as const),
    ...protocol.map((text) => ({ kind: 'protocol', text }) as const),
  ];
}

function arrivalViolations({ expect }: MessageRow, seen: MessageObservation, values: Values): string[] {
  const wanted = expect.arrivals.map((arrival) => ({ arrival, content: contentOf(arrival, values) }));
  const found: string[] = [];
  for (const request of completeArrivals(expect, seen)) {
    const at = wanted.findIndex(({ content }) => content === contentSeen(request));
    const [one] = at === -1 ? [] : wanted.splice(at, 1);
    if (one) found.push(...fieldViolations(request, one.arrival, values));
    else found.push(`arrival: ${contentSeen(request)} was not to arrive`);
  }
  const complete = completeArrivals(expect, seen);
  if (expect.apart && new Set(complete.map(({ connection }) => connection)).size < complete.length)
    found.push('arrival: on the connection that may have a body unread');
  for (const text of expect.unseen ?? [])
    if (seen.bytes.includes(fill(text, values))) found.push(`bytes: ${JSON.stringify(text)} was seen`);
  return found;
}

/** What was to arrive and did not, or arrived in part. */
function absences({ expect }: MessageRow, seen: MessageObservation, values: Values): string[] {
  const complete = completeArrivals(expect, seen);
  const got = complete.map(contentSeen);
  const wanted = expect.arrivals.map((arrival) => contentOf(arrival, values));
  const found: string[] = [];
  if (String(got) !== String(wanted)) found.push(`arrival: ${String(got)} instead of ${String(wanted)}`);
  const begun = seen.arrivals.length - complete.length;
  if (begun > (expect.mayBegin ? 1 : 0)) found.push(`arrival: ${begun} incomplete requests`);
  if (wanted.length === 0 && !expect.mayBegin && seen.bytes !== '')
    found.push(`bytes: ${JSON.stringify(seen.bytes.slice(0, 200))}`);
  return found;
}

function completeArrivals(
  { rest }: MessageExpectation,
  { arrivals }: MessageObservation,
): readonly OriginRequest[] {
  return arrivals.filter(({ body }) => body !== undefined || rest !== undefined);
}

function contentSeen({ method, target, body }: OriginRequest): string {
  return JSON.stringify([`${method} ${target}`, body?.content.toString('latin1') ?? '']);
}

function contentOf({ head, body }: ExpectedArrival, values: Values): string {
  return JSON.stringify([startOf(head, values), fill(body, values)]);
}

function startOf(head: readonly string[], values: Values): string {
  return fill(head[0] ?? '', values).replace(/ HTTP\/1\.[01]$/, '');
}

/** Written by each proxy for its own connection to the target. */
const ownFields =
  /^(?:connection|x-forwarded-(?:for|host|proto)|expect|content-length: 0$|transfer-encoding|content-length)/;

function fieldViolations(
  { headers }: OriginRequest,
  arrival: ExpectedArrival,
  values: Values,
): readonly string[] {
  const written = arrival.head.slice(1).filter((line) => line !== '{AUTH}');
  const wanted = written.map((line) => folded(fill(line, values))).filter((line) => !ownFields.test(line));
  const got = headers
    .map(([name, value]) => folded(`${name}: ${value}`))
    .filter((line) => !ownFields.test(line));
  const changed = String(got.toSorted()) !== String(wanted.toSorted());
  return changed ? [`arrival: fields ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`] : [];
}

function folded(line: string): string {
  const colon = line.indexOf(':');
  return `${line.slice(0, colon).toLowerCase()}:${line.slice(colon + 1)}`;
}

/** Origins respond with `METHOD target`: the client must read those of its requests, in order. */
function crossedResponses(
  { expect }: MessageRow,
  seen: MessageObservation,
  values: Values,
): readonly string[] {
  const requested = expect.arrivals.map((arrival) => startOf(arrival.head, values));
  const received = seen.responses.map(({ text }) => text).filter((text) => requested.includes(text));
  const isCrossed = received.some(
    (text, i) => i > 0 && requested.indexOf(text) < requested.indexOf(received[i - 1] ?? ''),
  );
  return isCrossed ? [`response: ${JSON.stringify(received)}`] : [];
}

function protocolViolations({ expect }: MessageRow, seen: MessageObservation): string[] {
  const final = ({ status }: { readonly status: number }): boolean => status >= 200 || status === 101;
  const asText = ({
    status,
    code = '',
  }: {
    readonly status: number;
    readonly code?: string | undefined;
  }): string => `${status} ${code}`.trim();
  const wanted = expect.responses.filter(final).map(asText);
  const got = seen.responses.filter(final).map(asText);
  const found: string[] = [];
  if (String(got) !== String(wanted)) found.push(`response: ${String(got)} instead of ${String(wanted)}`);
  if (seen.rest !== (expect.rest ?? '')) found.push(`response: ${JSON.stringify(seen.rest)} after the last`);
  if (expect.ends && !seen.isEnded) found.push('end: the connection stays open');
  return [...found, ...seen.missing.map((what) => `missing: no ${what}`)];
}
