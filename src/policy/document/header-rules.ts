// Which header names and values may ever be injected. Asked when a configuration is applied (a 422)
// and again for what a callback answers (a 502), so that both see one law. It never repeats a value.

const MAX_NAME_LENGTH = 256;
const MAX_VALUE_LENGTH = 8192;

/** Why this name may not be injected, as a sentence; undefined if it may. */
export function headerNameError(name: string): string | undefined {
  if (name.startsWith(':')) return 'Pseudo-headers belong to the protocol and cannot be injected';
  if (!TOKEN.test(name) || name.length > MAX_NAME_LENGTH)
    return `A header name should be a token (RFC 9110 §5.6.2) of at most ${MAX_NAME_LENGTH} characters`;
  const folded = foldHeaderName(name);
  if (FRAMING.has(folded) || folded.startsWith('proxy-'))
    return `${name} decides framing, routing or the connection, so it cannot be injected`;
  return undefined;
}

/** Why this name may not be sent to a callback, as a sentence; undefined if it may. */
export function requestHeaderNameError(name: string): string | undefined {
  const error = headerNameError(name);
  if (error !== undefined) return error;
  return CALLBACK_OWN.has(foldHeaderName(name))
    ? `${name} is set by the proxy on callback requests`
    : undefined;
}

/** Why this value may not be injected (RFC 9110 §5.5, visible ASCII only), as a sentence; undefined if it may. */
export function headerValueError(value: string): string | undefined {
  if (value === '') return 'A header value should not be empty';
  const tooLong = headerLengthError(value.length);
  if (tooLong !== undefined) return tooLong;
  // The commonest slip is the line end of a secret's file; the worst is CR LF and a header of the attacker's choice.
  if (/[\r\n]/.test(value))
    return 'A header value should hold no line break; remove the one at its end, if any';
  if (!/^[\t\x20-\x7e]*$/.test(value))
    return 'A header value should hold visible ASCII, spaces and tabs only';
  if (/^[\t ]|[\t ]$/.test(value)) return 'A header value should not begin or end with a space or tab';
  return undefined;
}

/** The same of a value that need not be there yet, by its length alone. */
export function headerLengthError(length: number): string | undefined {
  return length > MAX_VALUE_LENGTH
    ? `A header value should have at most ${MAX_VALUE_LENGTH} bytes`
    : undefined;
}

/** One spelling for names that some server behind us reads as one: case folded, `_` as `-` (CGI, WSGI, PHP). */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const FRAMING: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'te',
  'trailer',
  'upgrade',
  'keep-alive',
  'expect',
]);

const CALLBACK_OWN: ReadonlySet<string> = new Set([
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
]);
