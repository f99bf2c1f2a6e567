// Stage `tls`: handshakes. A row is a ClientHello that no library writes (`hello`), a library client whose first bytes are
// split differently (`client`), many of either (`times`), or a host that does not prove its name (`host`). Bytes are hex.
// Independent of proxy and driver.
import type { AttackRow } from '../row.ts';

/** A valid TLS 1.2 ClientHello, to which the server certificate is sent in plaintext, with the changes of the row. */
export type HelloParts = {
  /** Entries of server_name, latin1; without entries there is no such extension. */
  readonly names?: readonly string[];
  /** Replaces the bytes of the extension. */
  readonly nameData?: string;
  readonly alpn?: readonly string[];
  /** Further extensions: type, and bytes or a number of zeros. */
  readonly more?: readonly (readonly [type: number, data: string | number])[];
  readonly version?: string;
  readonly suites?: string;
  readonly compressions?: string;
  readonly sessionId?: string;
};

/** How it is split: message bytes in each record, and record bytes in each write. */
export type Cut = { readonly records?: number; readonly writes?: number };

export type HelloShape = Cut & {
  readonly hello: HelloParts;
  /** Bytes before it, after its first record, after all of it, or instead of it. */
  readonly before?: string;
  readonly within?: string;
  readonly after?: string;
  readonly instead?: string;
  /** The number of such clients, each on its own connection; `{n}` is the number of the client. */
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
  /** Protocols that are offered only to make the ClientHello this long. */
  readonly fill?: number;
  readonly times?: number;
  readonly authority?: string;
  /** Instead of a plain request: one-byte records, a renegotiation, or TLS in TLS. */
  readonly then?: 'tiny records' | 'renegotiation' | 'tls in tls' | 'http2 preface' | 'nothing';
};

export type HostShape = { readonly host: string; readonly over: 'http/1.1' | 'h2' };

export type TlsScript = HelloShape | ClientShape | HostShape;

export type TlsExpectation = {
  /** `alert 112`, `certificate of NAME`, `end`; for a client `h2 200`, `http/1.1 502 upstream_untrusted`, `error CODE`. The same for all `times`. */
  readonly seen: string;
  /** The number of requests that arrived. */
  readonly arrives: number;
  /** The host has proved its name, so that bytes to it are not counted. */
  readonly isProven?: true;
  /** The number of distinct certificates that clients received; not checked if absent. */
  readonly certificates?: number;
  /** `outcome reason cause` of some record, or a prefix. */
  readonly record?: string;
};

export type TlsRow = AttackRow<TlsScript, TlsExpectation>;

export function tlsRows(
  classId: string,
  table: readonly (readonly [name: string, script: TlsScript, expect: TlsExpectation])[],
): readonly TlsRow[] {
  return table.map(([name, script, expect]) => ({ id: `${classId} ${name}`, script, expect }));
}

export const certificateSent: TlsExpectation = { seen: 'certificate of api.test', arrives: 0 };
export const malformed: TlsExpectation = {
  seen: 'alert 50',
  arrives: 0,
  record: 'failed client_hello_malformed',
};
export const otherName: TlsExpectation = { seen: 'alert 112', arrives: 0, record: 'failed sni_mismatch' };
export const servedPlainly: TlsExpectation = { seen: 'http/1.1 200', arrives: 1, record: 'injected' };
