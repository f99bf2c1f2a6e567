// The grammar of chunk extensions (RFC 9112 §7.1.1, without its bad whitespace) as a byte-wise automaton.
// Extensions are never forwarded; they are parsed only so that CRLF is found where every hop finds it.
import { byteAt, classAt, FIELD_VALUE, SEMICOLON, TOKEN } from './byte-class.ts';

/** Where an extension begins: just past its semicolon. */
export const EXTENSION_START = 0;
const NAME = 1;
const VALUE_START = 2;
const VALUE = 3;
const QUOTED = 4;
const ESCAPED = 5;
const QUOTE_CLOSED = 6;
/** The byte is not allowed in an extension. */
export const EXTENSION_MALFORMED = -1;

const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The state after one more byte, which is not CR. */
export function nextExtensionState(state: number, bytes: Buffer, at: number): number {
  const byte = byteAt(bytes, at);
  const bits = classAt(bytes, at);
  if (state === QUOTED) {
    if (byte === QUOTE) return QUOTE_CLOSED;
    if (byte === BACKSLASH) return ESCAPED;
    return (bits & FIELD_VALUE) === 0 ? EXTENSION_MALFORMED : QUOTED;
  }
  if (state === ESCAPED) return (bits & FIELD_VALUE) === 0 ? EXTENSION_MALFORMED : QUOTED;
  if (byte === SEMICOLON) return mayEndExtension(state) ? EXTENSION_START : EXTENSION_MALFORMED;
  if (byte === EQUALS && state === NAME) return VALUE_START;
  if (byte === QUOTE && state === VALUE_START) return QUOTED;
  if ((bits & TOKEN) === 0 || state === QUOTE_CLOSED) return EXTENSION_MALFORMED;
  return state === EXTENSION_START ? NAME : state === VALUE_START ? VALUE : state;
}

/** True where `;` or CRLF may follow. */
export function mayEndExtension(state: number): boolean {
  return state === NAME || state === VALUE || state === QUOTE_CLOSED;
}
