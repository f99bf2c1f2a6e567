// The shapes of rows of the stage `connect`: heads as a client writes them, and the possible outcomes. Uses the addresses of
// the scene; independent of the rows.
import type { ConnectExpectation, ConnectRow, ConnectScript, ExpectedRecord } from './connect-script.ts';

export const INJECTED = 'Authorization: Bearer {SECRET}';

/** A row without its class. */
export type Row = readonly [name: string, script: ConnectScript, expect: ConnectExpectation];

export function rowsOf(classId: string, rows: readonly Row[]): readonly ConnectRow[] {
  return rows.map(([name, script, expect]) => ({ id: `${classId} ${name}`, script, expect }));
}

/** The UTF-8 bytes of a text, as a latin1 string. */
export function utf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** Joins lines to a head. */
export function head(...lines: readonly string[]): string {
  return [...lines, '', ''].join('\r\n');
}

/** A CONNECT as every client writes it, with the authority also in Host. */
export function connectTo(authority: string): string {
  return head(`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`);
}

export function get(host: string, ...more: readonly string[]): string {
  return head('GET /v1/x HTTP/1.1', `Host: ${host}`, ...more);
}

/** The head as it arrives, with the credential as its last field. */
export function withCredential(request: string): string {
  return request.replace(/\r\n\r\n$/, `\r\n${INJECTED}\r\n\r\n`);
}

/** CONNECT, TLS under `name`, and requests. */
export function inside(
  authority: string,
  name: string,
  requests: readonly string[],
  more: Partial<ConnectScript> & { readonly serverName?: string } = {},
): ConnectScript {
  const { serverName, ...script } = more;
  const then = { kind: 'tls', name, ...(serverName === undefined ? {} : { serverName }), requests } as const;
  return { send: [connectTo(authority)], ...script, then };
}

/** CONNECT, then plaintext bytes. */
export function inClear(
  authority: string,
  requests: readonly string[],
  more: Partial<ConnectScript> = {},
): ConnectScript {
  return { send: [connectTo(authority)], ...more, then: { kind: 'clear', requests } };
}

/** CONNECT, then a ClientHello for these names. */
export function greeting(
  authority: string,
  serverNames: readonly string[],
  more: Partial<ConnectScript> = {},
): ConnectScript {
  return { send: [connectTo(authority)], ...more, then: { kind: 'hello', serverNames } };
}

/** The head on the proxy port is refused: no name is looked up and no address is dialled. */
export function refused(
  connect: string,
  more: Partial<ConnectExpectation> & { cause?: string } = {},
): ConnectExpectation {
  const { cause, ...rest } = more;
  return { connect, records: [refusal(connect, cause)], ...rest };
}

/** The ClientHello is rejected before any handshake, and nothing was dialled. */
export function turnedAway(alert: number | 'none', reason: string, cause?: string): ConnectExpectation {
  const record = { outcome: 'failed', reason, ...(cause === undefined ? {} : { cause }) };
  return { connect: '200', alert, records: [record] };
}

export const UNRECOGNIZED_NAME = 112;
export const DECODE_ERROR = 50;

/** The ClientHello names another host than the CONNECT. */
export const otherName: ConnectExpectation = turnedAway(UNRECOGNIZED_NAME, 'sni_mismatch', 'other_name');
/** The ClientHello contains an invalid host name. */
export const badName: ConnectExpectation = turnedAway(
  DECODE_ERROR,
  'client_hello_malformed',
  'server_name_invalid',
);

/** TLS with a leaf of the proxy for the host of the CONNECT; then the request is refused and nothing is sent. */
export function refusedInside(response: string, cause?: string): ConnectExpectation {
  return {
    connect: '200',
    certificateIssuer: 'proxy',
    responses: [response],
    records: [refusal(response, cause)],
  };
}

/** The same in a tunnel without TLS. */
export function refusedInClear(response: string, cause?: string): ConnectExpectation {
  return { connect: '200', responses: [response], records: [refusal(response, cause)] };
}

/** The request arrives as `bytes` at the host that `name` proves, with the credential or without. */
export function arrives(
  name: string,
  bytes: string,
  more: Partial<ConnectExpectation> & { readonly address?: string } = {},
): ConnectExpectation {
  const { address = '8.8.1.1:443', ...rest } = more;
  return {
    connect: '200',
    certificateIssuer: 'proxy',
    responses: ['200'],
    arrived: [{ at: 'api', bytes }],
    requestedNames: [name],
    dialled: [address],
    mayReuse: true,
    lookedUp: [name],
    records: [{ outcome: bytes.includes(INJECTED) ? 'injected' : 'forwarded' }],
    ...rest,
  };
}

/** The same for api.test, with the credential. */
export function injected(host = 'api.test', more: Parameters<typeof arrives>[2] = {}): ConnectExpectation {
  return arrives('api.test', withCredential(get(host)), more);
}

/** The same for an address, for which no SNI is sent. */
export function arrivesAt(at: string, bytes: string, address: string): ConnectExpectation {
  return arrives('', bytes, { address, lookedUp: [], arrived: [{ at, bytes }] });
}

/** The same in plaintext. */
export function arrivesInClear(name: string, bytes: string): ConnectExpectation {
  const { certificateIssuer: _, ...rest } = arrives(name, bytes, { address: '8.8.1.1:80' });
  return { ...rest, arrived: [{ at: 'clear', bytes }], requestedNames: [''] };
}

/** A blind tunnel to `address`: bytes are relayed unchanged. */
export function tunnelled(
  address: string,
  bytes: string,
  more: Partial<ConnectExpectation> = {},
): ConnectExpectation {
  return {
    connect: '200',
    responses: ['200'],
    arrived: [{ at: address.endsWith(':80') ? 'clear' : 'evil', bytes }],
    requestedNames: [''],
    dialled: [address],
    records: [{ outcome: 'tunnelled' }],
    ...more,
  };
}

/** Accepted by every check, but nothing listens there. */
export function unreachable(dialled: string, lookedUp: readonly string[] = []): ConnectExpectation {
  return {
    connect: '502 upstream_unreachable',
    dialled: [dialled],
    lookedUp,
    records: [{ outcome: 'refused', reason: 'upstream_unreachable' }],
  };
}

function refusal(response: string, cause: string | undefined): ExpectedRecord {
  const reason = response.slice(response.indexOf(' ') + 1);
  return { outcome: 'refused', reason, ...(cause === undefined ? {} : { cause }) };
}
