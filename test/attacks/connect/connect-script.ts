// Stage `connect`: what opens a tunnel, and who is spoken to inside. A row sends the head of a CONNECT (or whatever else it
// sends to the proxy port), then, if that was answered 200, TLS with requests inside, a hand-made ClientHello, or bytes
// in clear. How to write one: build it from the shapes of `expectations.ts`; `{PROXY}`, `{ADMIN}`, `{OTHER}` stand for ports
// of our own listeners, `{SECRET}` for the credential. It knows neither proxy nor driver.
import type { AttackRow } from '../row.ts';
import type { PolicyName } from './connect-policies.ts';

export type ConnectScript = {
  /** Another proxy_config than `base`. */
  readonly policy?: PolicyName;
  /** `loose`: the proxy with everything allowed that an operator can allow. */
  readonly at?: 'loose';
  /** The first bytes on the proxy port; more than one: each after the one before it left. */
  readonly send: readonly string[];
  readonly then?: TlsPart | HelloPart | ClearPart | LeavePart;
};

export type TlsPart = {
  readonly kind: 'tls';
  /** The name whose certificate must be shown. */
  readonly name: string;
  /** What the client asks for, where it is not that name; '' for none. */
  readonly serverName?: string;
  /** Each is sent when the one before it was answered. */
  readonly requests: readonly string[];
};

/** A ClientHello that no library writes. */
export type HelloPart = {
  readonly kind: 'hello';
  readonly serverNames: readonly string[];
  /** Together with the CONNECT, before it was answered. */
  readonly isEarly?: true;
};

export type ClearPart = { readonly kind: 'clear'; readonly requests: readonly string[] };

/** The client leaves, after these bytes. */
export type LeavePart = { readonly kind: 'leave'; readonly by: 'fin' | 'rst'; readonly bytes: string };

export type Arrival = {
  /** The origin. */
  readonly at: string;
  /** Every byte that came, after TLS. */
  readonly bytes: string;
};

export type ConnectExpectation = {
  /** Status, and the code of a refusal: `403 port_denied`. */
  readonly connect: string;
  /** Of each request inside, likewise; those after the first refusal are not sent. */
  readonly responses?: readonly string[];
  /** The fatal alert that a hello meets instead, by its number; `none`: the connection ends without a byte. */
  readonly alert?: number | 'none';
  /** Who signed the certificate that was shown inside. */
  readonly shownBy?: 'proxy' | 'origin';
  readonly arrived?: readonly Arrival[];
  /** The names under which origins were asked for a certificate. */
  readonly askedFor?: readonly string[];
  /** `address:port`, in order. */
  readonly dialled?: readonly string[];
  /** A connection that stood already may have been used instead. */
  readonly mayReuse?: true;
  /** Names, each at most once; one that was looked up before is remembered. */
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
