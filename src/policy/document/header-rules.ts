// Which header names and values may ever be injected. Checked when a configuration is applied (a 422) and again for the
// response of a callback (a 502), so that both follow the same rules. No message quotes a value.

const MAX_NAME_LENGTH = 256;
const MAX_VALUE_LENGTH = 8192;

/** Why this name may not be injected, as a sentence; undefined if it may. */
export function headerNameError(name: string): string | undefined {
  if (name.startsWith(':')) return 'Pseudo-headers belong to the protocol and cannot be injected';
  if (!TOKEN.test(name) || name.length > MAX_NAME_LENGTH)
    return `A header name must be a token (RFC 9110 §5.6.2) of at most ${MAX_NAME_LENGTH} characters`;
  const folded = foldHeaderName(name);
  if (FRAMING.has(folded) || folded.startsWith('proxy-'))
    return `${name} controls framing, routing or the connection, so it cannot be injected`;
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
  if (value === '') return 'A header value must not be empty';
  const tooLong = headerLengthError(value.length);
  if (tooLong !== undefined) return tooLong;
  // The commonest slip is the line end of a secret's file; the worst is CR LF and a header of the attacker's choice.
  if (/[\r\n]/.test(value))
    return 'A header value must not contain a line break; remove the one at its end, if any';
  if (!/^[\t\x20-\x7e]*$/.test(value))
    return 'A header value must contain visible ASCII, spaces and tabs only';
  if (/^[\t ]|[\t ]$/.test(value)) return 'A header value must not begin or end with a space or tab';
  return undefined;
}

/** The length check of headerValueError, for a value that is not assembled yet. */
export function headerLengthError(length: number): string | undefined {
  return length > MAX_VALUE_LENGTH ? `A header value must have at most ${MAX_VALUE_LENGTH} bytes` : undefined;
}

/** One spelling for names that some upstream reads as one: case folded, `_` as `-` (CGI, WSGI, PHP). */
export function foldHeaderName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** `Bearer {API_TOKEN}`: literal text with the names of workspace secrets in braces. */
export type Template = { readonly parts: readonly (string | { readonly secret: string })[] };

/**
 * Splits a template into literals and secret names; a string says what is wrong. The template is parsed once: the value
 * of a secret is never read as a template, so it may contain braces.
 */
export function parseSecretTemplate(text: string): Template | string {
  // split() includes what a capture group matched: literals at the even positions, names at the odd ones.
  const pieces = text.split(/\{([A-Za-z_][A-Za-z0-9_]*)\}/);
  const literals = pieces.filter((_, i) => i % 2 === 0);
  if (literals.some((literal) => /[{}]/.test(literal)))
    return 'A brace must enclose the name of a secret: {NAME}, of letters, digits and underscores, not beginning with a digit';
  if (pieces.length === 1)
    return 'A workspace_secret value must name a secret in braces, as in Bearer {API_TOKEN}; for text without a secret use plaintext';
  const parts = pieces.map((piece, i) => (i % 2 === 0 ? piece : { secret: piece }));
  return { parts: parts.filter((part) => part !== '') };
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
