// Stage `connect`: CONNECT requests and the traffic inside tunnels. A row sends the head of a CONNECT (or other bytes) to the
// proxy port and, after a 200, TLS with requests inside, a hand-made ClientHello, or plaintext bytes. Rows are built from the
// shapes of `expectations.ts`; `{PROXY}`, `{ADMIN}`, `{OTHER}` are ports of own listeners, `{SECRET}` is the credential.
// Independent of proxy and driver.
import type { AttackRow } from '../row.ts';
import type { PolicyName } from './connect-policies.ts';

export type ConnectScript = {
  /** The proxy_config, `base` by default. */
  readonly policy?: PolicyName;
  /** `loose`: the proxy with everything allowed that a setting can allow. */
  readonly at?: 'loose';
  /** The first bytes on the proxy port; each after the previous one was sent. */
  readonly send: readonly string[];
  readonly then?: TlsPart | HelloPart | ClearPart | LeavePart;
};

export type TlsPart = {
  readonly kind: 'tls';
  /** The name that the certificate must prove. */
  readonly name: string;
  /** The SNI of the client, if it differs from that name; '' for none. */
  readonly serverName?: string;
  /** Each is sent after the response to the previous one. */
  readonly requests: readonly string[];
};

/** A ClientHello that no TLS library writes. */
export type HelloPart = {
  readonly kind: 'hello';
  readonly serverNames: readonly string[];
  /** Sent together with the CONNECT, before its response. */
  readonly isEarly?: true;
};

export type ClearPart = { readonly kind: 'clear'; readonly requests: readonly string[] };

/** The client disconnects after these bytes. */
export type LeavePart = { readonly kind: 'leave'; readonly by: 'fin' | 'rst'; readonly bytes: string };

export type Arrival = {
  /** The origin. */
  readonly at: string;
  /** Every byte that arrived, decrypted. */
  readonly bytes: string;
};

export type ConnectExpectation = {
  /** Status, and the code of a refusal: `403 port_denied`. */
  readonly connect: string;
  /** The same for each request inside; those after the first refusal are not sent. */
  readonly responses?: readonly string[];
  /** The number of the fatal alert after a ClientHello; `none`: the connection closes without a byte. */
  readonly alert?: number | 'none';
  /** The issuer of the certificate inside the tunnel. */
  readonly certificateIssuer?: 'proxy' | 'origin';
  readonly arrived?: readonly Arrival[];
  /** The SNI values that origins received. */
  readonly requestedNames?: readonly string[];
  /** `address:port`, in order. */
  readonly dialled?: readonly string[];
  /** An open connection may have been reused instead. */
  readonly mayReuse?: true;
  /** Names, each at most once; earlier lookups are cached. */
  readonly lookedUp?: readonly string[];
  readonly records: readonly ExpectedRecord[];
};

export type ExpectedRecord = {
  readonly outcome: string;
  readonly reason?: string;
  readonly cause?: string;
  readonly authority?: string;
};

export type ConnectRow = AttackRow<ConnectScript, ConnectExpectation>;
