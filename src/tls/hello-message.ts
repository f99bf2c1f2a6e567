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

// Which extensions a hello has had: one bit for each type, cleared before each hello.
const seen = new Uint32Array(65_536 / 32);

/** Parses the message after its four header bytes. Never throws. */
export function parseHelloMessage(body: Buffer): ClientHello | HelloMessageErrorCode {
  const cursor = new Cursor(body, 0, body.length);
  const version = cursor.number(2);
  const hasRandom = cursor.skip(32);
  const sessionIdLength = cursor.vector(1);
  const cipherSuitesLength = cursor.vector(2);
  const compressionsLength = cursor.vector(1);
  if (!hasRandom || compressionsLength === PAST_END) return 'hello_malformed';
  if (version >> 8 !== 3 || sessionIdLength > 32) return 'hello_malformed';
  if (cipherSuitesLength === 0 || cipherSuitesLength % 2 !== 0) return 'hello_malformed';
  if (compressionsLength === 0) return 'hello_malformed';
  if (cursor.isAtEnd) return { serverName: undefined, alpn: undefined }; // RFC 5246 §7.4.1.2 allows it

  const extensionsLength = cursor.vector(2);
  if (extensionsLength === PAST_END || !cursor.isAtEnd) return 'hello_malformed';
  return parseExtensions(cursor.content(extensionsLength));
}

function parseExtensions(cursor: Cursor): ClientHello | HelloMessageErrorCode {
  seen.fill(0);
  let nameData: Cursor | undefined;
  let alpnData: Cursor | undefined;
  while (!cursor.isAtEnd) {
    const type = cursor.number(2);
    const length = cursor.vector(2);
    if (length === PAST_END) return 'hello_malformed';
    // RFC 8446 §4.2. Of two names, this parser and OpenSSL could read different ones.
    if (hasSeen(type)) return 'extension_repeated';
    if (type === SERVER_NAME) nameData = cursor.content(length);
    else if (type === ALPN) alpnData = cursor.content(length);
  }
  const serverName = nameData && parseServerName(nameData);
  if (nameData && serverName === undefined) return 'server_name_invalid';
  const alpn = alpnData && parseProtocols(alpnData);
  if (alpnData && alpn === undefined) return 'alpn_invalid';
  return { serverName, alpn };
}

/** Whether this hello had an extension of this type before. */
function hasSeen(type: number): boolean {
  const known = seen[type >> 5] ?? 0;
  const bit = 1 << (type & 31);
  seen[type >> 5] = known | bit;
  return (known & bit) !== 0;
}

/** RFC 6066 §3, parsed as OpenSSL does: exactly one entry, which is a host name. */
function parseServerName(outer: Cursor): string | undefined {
  const listLength = outer.vector(2);
  if (listLength === PAST_END || !outer.isAtEnd) return undefined;
  const cursor = outer.content(listLength);
  const type = cursor.number(1);
  const length = cursor.vector(2);
  if (type !== 0 || length === PAST_END || !cursor.isAtEnd) return undefined;
  return canonicalHostName(cursor.text(length));
}

// Labels of letters, digits, hyphens and underscores.
const HOST_NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
// No top-level domain is a number, and `127.1` is an address to getaddrinfo.
const NUMBER_AT_END = /(?:^|\.)\d+$/;

/** Lower case; one trailing dot is dropped (curl sends it); addresses are not names. */
function canonicalHostName(text: string): string | undefined {
  const lower = text.toLowerCase();
  const name = lower.endsWith('.') ? lower.slice(0, -1) : lower;
  const isName = name.length <= MAX_HOST_NAME && HOST_NAME.test(name);
  return isName && !NUMBER_AT_END.test(name) ? name : undefined;
}

/** RFC 7301 §3.1: a non-empty list of non-empty names. */
function parseProtocols(outer: Cursor): readonly string[] | undefined {
  const listLength = outer.vector(2);
  if (listLength === PAST_END || listLength === 0 || !outer.isAtEnd) return undefined;
  const cursor = outer.content(listLength);
  const protocols: string[] = [];
  while (!cursor.isAtEnd) {
    const length = cursor.vector(1);
    if (length === PAST_END || length === 0) return undefined;
    protocols.push(cursor.text(length));
  }
  return protocols;
}

/** Less than any number or length. */
const PAST_END = -1;

/**
 * Reads bytes from the front. A read past the end is PAST_END, and so is every read after it. Vectors are returned as
 * lengths: a slice for each of the twenty extensions of a hello would be a fifth of the garbage of a tunnel.
 */
class Cursor {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#end;
  }

  /** False past the end. */
  skip(size: number): boolean {
    if (this.#at === PAST_END || this.#at + size > this.#end) {
      this.#at = PAST_END;
      return false;
    }
    this.#at += size;
    return true;
  }

  number(size: 1 | 2): number {
    if (!this.skip(size)) return PAST_END;
    const last = this.#bytes[this.#at - 1] ?? 0;
    return size === 1 ? last : ((this.#bytes[this.#at - 2] ?? 0) << 8) | last;
  }

  /** Moves over a vector, its length in `size` bytes and then its content, and returns the length. */
  vector(size: 1 | 2): number {
    const length = this.number(size);
    return length !== PAST_END && this.skip(length) ? length : PAST_END;
  }

  /** The content, of this length, of the vector before this position. */
  content(length: number): Cursor {
    return new Cursor(this.#bytes, this.#at - length, this.#at);
  }

  /** The same as text of one character for each byte. */
  text(length: number): string {
    return this.#bytes.toString('latin1', this.#at - length, this.#at);
  }
}
