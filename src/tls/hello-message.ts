// Parses the body of a ClientHello message (RFC 8446 §4.1.2): its server name and its ALPN list, every length exact.

/** What routing needs. `serverName` is lower case, without a trailing dot; `alpn` is in the client's order. */
export type ClientHello = {
  readonly serverName: string | undefined;
  readonly alpn: readonly string[] | undefined;
};

export type HelloMessageErrorCode =
  | 'hello_malformed'
  | 'extension_repeated'
  | 'server_name_invalid'
  | 'alpn_invalid';

const SERVER_NAME = 0;
const ALPN = 16;
const MAX_HOST_NAME = 253;

/** Parses the message after its four header bytes. Never throws. */
export function parseHelloMessage(body: Buffer): ClientHello | HelloMessageErrorCode {
  const cursor = new Cursor(body);
  const version = cursor.take(2);
  const random = cursor.take(32);
  const sessionId = cursor.vector(1);
  const cipherSuites = cursor.vector(2);
  const compressions = cursor.vector(1);
  if (!version || !random || !sessionId || !cipherSuites || !compressions) return 'hello_malformed';
  if (version[0] !== 3 || sessionId.length > 32) return 'hello_malformed';
  if (cipherSuites.length === 0 || cipherSuites.length % 2 !== 0) return 'hello_malformed';
  if (compressions.length === 0) return 'hello_malformed';
  if (cursor.isAtEnd) return { serverName: undefined, alpn: undefined }; // RFC 5246 §7.4.1.2 allows it

  const extensions = cursor.vector(2);
  if (!extensions || !cursor.isAtEnd) return 'hello_malformed';
  return parseExtensions(extensions);
}

function parseExtensions(bytes: Buffer): ClientHello | HelloMessageErrorCode {
  const byType = new Map<number, Buffer>();
  const cursor = new Cursor(bytes);
  while (!cursor.isAtEnd) {
    const type = cursor.number(2);
    const data = cursor.vector(2);
    if (type === undefined || !data) return 'hello_malformed';
    // RFC 8446 §4.2. Of two names, this parser and OpenSSL could read different ones.
    if (byType.has(type)) return 'extension_repeated';
    byType.set(type, data);
  }
  const nameData = byType.get(SERVER_NAME);
  const serverName = nameData && parseServerName(nameData);
  if (nameData && serverName === undefined) return 'server_name_invalid';
  const alpnData = byType.get(ALPN);
  const alpn = alpnData && parseProtocols(alpnData);
  if (alpnData && alpn === undefined) return 'alpn_invalid';
  return { serverName, alpn };
}

/** RFC 6066 §3, parsed as OpenSSL does: exactly one entry, which is a host name. */
function parseServerName(data: Buffer): string | undefined {
  const outer = new Cursor(data);
  const list = outer.vector(2);
  if (!list || !outer.isAtEnd) return undefined;
  const cursor = new Cursor(list);
  const type = cursor.number(1);
  const name = cursor.vector(2);
  if (type !== 0 || !name || !cursor.isAtEnd) return undefined;
  return canonicalHostName(name.toString('latin1'));
}

/** Letters, digits, hyphen, underscore; one trailing dot is dropped (curl sends it); addresses are not names. */
function canonicalHostName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, '');
  const labels = name.split('.');
  const isName = name.length <= MAX_HOST_NAME && labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
  // No top-level domain is a number, and `127.1` is an address to getaddrinfo.
  const isAddress = /^\d+$/.test(labels.at(-1) ?? '');
  return isName && !isAddress ? name : undefined;
}

/** RFC 7301 §3.1: a non-empty list of non-empty names. */
function parseProtocols(data: Buffer): readonly string[] | undefined {
  const outer = new Cursor(data);
  const list = outer.vector(2);
  if (!list || list.length === 0 || !outer.isAtEnd) return undefined;
  const cursor = new Cursor(list);
  const protocols: string[] = [];
  while (!cursor.isAtEnd) {
    const protocol = cursor.vector(1);
    if (!protocol || protocol.length === 0) return undefined;
    protocols.push(protocol.toString('latin1'));
  }
  return protocols;
}

/** Reads bytes from the front; a read past the end is undefined, never a shorter piece. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(size: number): Buffer | undefined {
    const end = this.#at + size;
    if (end > this.#bytes.length) return undefined;
    const piece = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return piece;
  }

  number(size: 1 | 2): number | undefined {
    return this.take(size)?.readUIntBE(0, size);
  }

  /** A variable-length vector: its length in `size` bytes, then its content. */
  vector(size: 1 | 2): Buffer | undefined {
    const length = this.number(size);
    return length === undefined ? undefined : this.take(length);
  }
}
