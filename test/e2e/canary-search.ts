// Searches bytes for known secret values, in every form in which a program may write a value by accident. Independent of
// the proxy.

/** `isText`: made of chosen characters, so that even a piece of it cannot occur by chance. */
export type Canary = { readonly name: string; readonly value: Buffer; readonly isText: boolean };

/** The length of an excerpt in error messages: JSON.parse quotes about this many characters. */
const PIECE_CHARS = 10;

/** Where and in which form a canary is in the bytes of a sink; empty when it is not. */
export function findLeaks(sink: string, bytes: Buffer, canaries: readonly Canary[]): readonly string[] {
  const views = viewsOf(bytes);
  return canaries.flatMap(({ name, value, isText }) => {
    const forms = [...formsOf(value), ...(isText ? [['a piece', piecesOf(value)] as const] : [])];
    const [found] = forms.filter(([, texts]) =>
      texts.some((text) => views.some((view) => view.includes(text))),
    );
    return found ? [`${name} in ${sink}, ${found[0]}`] : [];
  });
}

type Form = readonly [name: string, texts: readonly Buffer[]];

function formsOf(value: Buffer): readonly Form[] {
  const base64 = [0, 1, 2].map((shift) => alignedBase64(value, shift));
  const base64url = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const hex = value.toString('hex');
  return [
    ['raw', [value]],
    ['in base64', toBuffers(base64)],
    ['in base64url', toBuffers(base64url)],
    ['in hex', toBuffers([hex, hex.toUpperCase()])],
  ];
}

/** The base64 characters that depend on the value only, after `shift` other bytes. */
function alignedBase64(value: Buffer, shift: number): string {
  const usable = Math.floor(((shift + value.length) * 8) / 6);
  return Buffer.concat([Buffer.alloc(shift), value])
    .toString('base64')
    .slice(Math.ceil((shift * 8) / 6), usable);
}

function piecesOf(value: Buffer): readonly Buffer[] {
  const count = Math.max(0, value.length - PIECE_CHARS + 1);
  return Array.from({ length: count }, (_, at) => value.subarray(at, at + PIECE_CHARS));
}

function toBuffers(texts: readonly string[]): readonly Buffer[] {
  return texts.map((text) => Buffer.from(text));
}

/**
 * The bytes as they are, and decoded: without percent escapes, JSON escapes (twice: a log line may quote JSON), and the
 * line breaks of PEM. Escapes are decoded one by one, so that it does not matter which characters the writer escaped.
 */
function viewsOf(bytes: Buffer): readonly Buffer[] {
  const text = bytes.toString('latin1');
  const once = withoutJsonEscapes(text);
  const twice = withoutJsonEscapes(once);
  const views = [text, withoutPercent(text), withoutPercent(once), once, twice];
  const joined = [text, once, twice].map((view) => view.replaceAll(/\s+/g, ''));
  return [...new Set([...views, ...joined])].map((view) => Buffer.from(view, 'latin1'));
}

function withoutPercent(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

const JSON_ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

function withoutJsonEscapes(text: string): string {
  return text.replaceAll(/\\(?:u00([0-9a-f]{2})|(["\\/bfnrt]))/gi, (_, hex?: string, letter: string = '') =>
    hex === undefined ? (JSON_ESCAPES[letter] ?? letter) : String.fromCharCode(parseInt(hex, 16)),
  );
}

/** The forms of a planted leak: each of them must be found. */
export const encodings: readonly (readonly [string, (value: Buffer) => string | Buffer])[] = [
  ['raw', (value) => value],
  ['base64', (value) => value.toString('base64')],
  ['base64, shifted by one byte', (value) => Buffer.concat([Buffer.from('x'), value]).toString('base64')],
  ['base64, shifted by two bytes', (value) => Buffer.concat([Buffer.from('xy'), value]).toString('base64')],
  ['base64url', (value) => value.toString('base64url')],
  [
    'base64url, shifted by one byte',
    (value) => Buffer.concat([Buffer.from('x'), value]).toString('base64url'),
  ],
  [
    'base64url, shifted by two bytes',
    (value) => Buffer.concat([Buffer.from('xy'), value]).toString('base64url'),
  ],
  ['hex', (value) => value.toString('hex')],
  ['hex in upper case', (value) => value.toString('hex').toUpperCase()],
  ['percent', percentEncoded],
  ['percent escapes in lower case', (value) => escapedBy(value, '%')],
  ['JSON', jsonEncoded],
  ['JSON in JSON', (value) => jsonEncoded(jsonEncoded(value))],
  ['JSON, every character escaped', (value) => escapedBy(value, '\\u00')],
  ['lines of base64', (value) => value.toString('base64').replaceAll(/.{16}/g, '$&\n')],
];

function percentEncoded(value: Buffer): string {
  return value
    .toString('latin1')
    .replaceAll(/[^\w.~-]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function jsonEncoded(value: Buffer): Buffer {
  return Buffer.from(JSON.stringify(value.toString('latin1')), 'latin1');
}

function escapedBy(value: Buffer, mark: string): string {
  return [...value].map((byte) => `${mark}${byte.toString(16).padStart(2, '0')}`).join('');
}
