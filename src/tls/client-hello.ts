// Finds a TLS ClientHello in the first bytes of a client (RFC 8446 §5.1), for routing and ALPN only: OpenSSL parses the
// same bytes again and decides whether to accept them. Pure: no socket, no clock.
import { type ClientHello, type HelloMessageErrorCode, parseHelloMessage } from './hello-message.ts';

/** Why bytes that begin like TLS are not a ClientHello that the proxy accepts. */
export type HelloErrorCode = 'record_invalid' | 'hello_too_long' | 'not_client_hello' | HelloMessageErrorCode;

export type HelloReading =
  | { readonly kind: 'more' }
  | { readonly kind: 'not_tls' }
  | { readonly kind: 'error'; readonly code: HelloErrorCode }
  | ({ readonly kind: 'hello' } & ClientHello);

/** Collects a hello from pieces of any size, at a cost linear in its bytes. */
export type HelloCollector = {
  /** Takes the next piece and reads on. A result other than `more` is final. */
  push(piece: Buffer): HelloReading;
  /** All bytes that were pushed, to be passed on unread. Valid until the next push. */
  readonly bytes: Buffer;
};

/** The maximum of a hello with its record headers; real ones, post-quantum keys included, take 2 KiB. */
export const maxHelloBytes = 65_536;

const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const MAX_FRAGMENT = 16_384;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;

const NO_BYTES = Buffer.alloc(0);
const more: HelloReading = { kind: 'more' };
const notTls: HelloReading = { kind: 'not_tls' };

// RFC 8446 §6.2 and RFC 6066 §3.
const alertDescriptions = {
  decode_error: 50,
  internal_error: 80,
  unrecognized_name: 112,
  no_application_protocol: 120,
} as const;

/** A fatal alert in plaintext, as a server sends it before its ServerHello. */
export function fatalAlert(name: keyof typeof alertDescriptions): Buffer {
  return Buffer.from([21, 3, 3, 0, 2, 2, alertDescriptions[name]]);
}

export function createHelloCollector(): HelloCollector {
  const walk: Walk = { at: 0, size: 0, announced: undefined, fragments: [] };
  // The first piece as it came, which usually is the whole hello; then a buffer of our own, larger than its bytes.
  let store: Buffer = NO_BYTES;
  let length = 0;
  let reading = more;
  return {
    push(piece) {
      if (length === 0) {
        store = piece;
        length = piece.length;
      } else {
        if (length + piece.length > store.length) {
          const larger = Buffer.alloc(2 * (length + piece.length));
          store.copy(larger, 0, 0, length);
          store = larger;
        }
        length += piece.copy(store, length);
      }
      if (reading === more) reading = readOn(collected(store, length), walk);
      return reading;
    },
    get bytes() {
      return collected(store, length);
    },
  };
}

function collected(store: Buffer, length: number): Buffer {
  return store.length === length ? store : store.subarray(0, length);
}

/** How far whole records have been read: the offset of the next one, and the handshake bytes of those before it. */
type Walk = { at: number; size: number; announced: number | undefined; readonly fragments: Buffer[] };

function readOn(bytes: Buffer, walk: Walk): HelloReading {
  // SSLv2 hellos and plain HTTP differ in the first byte.
  if (bytes.length > 0 && bytes[0] !== HANDSHAKE) return notTls;
  while (walk.at + RECORD_HEADER <= bytes.length) {
    const start = walk.at + RECORD_HEADER;
    const end = start + bytes.readUInt16BE(walk.at + 3);
    if (bytes[walk.at] !== HANDSHAKE || bytes[walk.at + 1] !== 3) return error('record_invalid');
    if (end === start || end - start > MAX_FRAGMENT) return error('record_invalid');
    if (end > maxHelloBytes) return error('hello_too_long');
    if (end > bytes.length) return more;
    walk.fragments.push(bytes.subarray(start, end));
    walk.size += end - start;
    walk.at = end;
    const reading = readMessage(walk);
    if (reading !== more) return reading;
  }
  return more;
}

/** The first message of the fragments, which may span several records. OpenSSL checks what follows it. */
function readMessage(walk: Walk): HelloReading {
  if (walk.announced === undefined) {
    if (walk.size < MESSAGE_HEADER) return more;
    const header = joined(walk.fragments);
    if (header[0] !== CLIENT_HELLO) return error('not_client_hello');
    walk.announced = MESSAGE_HEADER + header.readUIntBE(1, 3);
  }
  if (RECORD_HEADER + walk.announced > maxHelloBytes) return error('hello_too_long');
  if (walk.size < walk.announced) return more;
  const hello = parseHelloMessage(joined(walk.fragments).subarray(MESSAGE_HEADER, walk.announced));
  return typeof hello === 'string' ? error(hello) : { kind: 'hello', ...hello };
}

function joined(fragments: readonly Buffer[]): Buffer {
  const [first] = fragments;
  return first && fragments.length === 1 ? first : Buffer.concat(fragments);
}

function error(code: HelloErrorCode): HelloReading {
  return { kind: 'error', code };
}
