// Stage `tls`: handshakes. A row is a ClientHello that no library writes (`hello`), a library's client whose first bytes
// are cut anew (`client`), many of either (`times`), or a host that does not prove its name (`host`). Bytes are hex.
// It knows neither proxy nor driver.
import type { AttackRow } from '../row.ts';

/** A hello of TLS 1.2 that is answered with a certificate in clear, changed as the row says. */
export type HelloParts = {
  /** Entries of server_name, latin1; none: no such extension. */
  readonly names?: readonly string[];
  /** Instead of the extension's own bytes. */
  readonly nameData?: string;
  readonly alpn?: readonly string[];
  /** Further extensions: type, bytes, or so many zeros. */
  readonly more?: readonly (readonly [type: number, data: string | number])[];
  readonly version?: string;
  readonly suites?: string;
  readonly compressions?: string;
  readonly sessionId?: string;
};

/** How it is cut: bytes of the message in a record, bytes of those in a write. */
export type Cut = { readonly records?: number; readonly writes?: number };

export type HelloShape = Cut & {
  readonly hello: HelloParts;
  /** Bytes before it, behind its first record, behind all of it, instead of all of it. */
  readonly before?: string;
  readonly within?: string;
  readonly behind?: string;
  readonly instead?: string;
  /** So many of them, each on a connection of its own; `{n}` is its number. */
  readonly times?: number;
  readonly authority?: string;
};

export type ClientShape = Cut & {
  readonly client: {
    readonly alpn?: readonly string[];
    readonly minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
    readonly maxVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
    readonly ciphers?: string;
    readonly name?: string;
  };
  /** Protocols that are offered only so that the hello is so long. */
  readonly fill?: number;
  readonly times?: number;
  readonly authority?: string;
  /** Instead of a plain request: bytes, each in a record of its own; a renegotiation; TLS once more. */
  readonly then?: 'tiny records' | 'renegotiation' | 'tls in tls' | 'http2 preface' | 'nothing';
};

export type HostShape = { readonly host: string; readonly over: 'http/1.1' | 'h2' };

export type TlsScript = HelloShape | ClientShape | HostShape;

export type TlsExpectation = {
  /** `alert 112`, `certificate of NAME`, `end`; of a client `h2 200`, `http/1.1 502 upstream_untrusted`, `error CODE`. All of `times` alike. */
  readonly seen: string;
  /** Requests that arrived. */
  readonly arrives: number;
  /** The host has proved its name, and what is sent to it is not counted. */
  readonly isProven?: true;
  /** Different certificates that were shown; not looked at if left out. */
  readonly certificates?: number;
  /** `outcome reason cause` of some record, as far as given. */
  readonly record?: string;
};

export type TlsRow = AttackRow<TlsScript, TlsExpectation>;

export function tlsRows(
  classId: string,
  table: readonly (readonly [name: string, script: TlsScript, expect: TlsExpectation])[],
): readonly TlsRow[] {
  return table.map(([name, script, expect]) => ({ id: `${classId} ${name}`, script, expect }));
}

export const shown: TlsExpectation = { seen: 'certificate of api.test', arrives: 0 };
export const malformed: TlsExpectation = {
  seen: 'alert 50',
  arrives: 0,
  record: 'failed client_hello_malformed',
};
export const otherName: TlsExpectation = { seen: 'alert 112', arrives: 0, record: 'failed sni_mismatch' };
export const servedPlainly: TlsExpectation = { seen: 'http/1.1 200', arrives: 1, record: 'injected' };
