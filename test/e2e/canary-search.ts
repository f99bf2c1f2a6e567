// Looks for known secret values in bytes, in every form in which a program writes a value by accident. It knows
// nothing of the proxy.

/** `isText`: made of characters of our choice, so that even a piece of it cannot be there by chance. */
export type Canary = { readonly name: string; readonly value: Buffer; readonly isText: boolean };

/** What error messages cut out of a text: JSON.parse quotes about this many characters. */
const PIECE_CHARS = 10;

/** Where and how a canary is in the bytes of a sink; nothing when it is not. */
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

/** The characters that the value alone determines, behind `shift` other bytes. */
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
 * The bytes as they are, and as they read once what was written around values is undone: percent escapes, JSON's
 * escapes (twice: a log line may quote JSON), and the line breaks of PEM. Escapes are undone one by one, so that it
 * does not matter which characters the writer thought worth one.
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

/** How a planted leak is written: each of these must be found. */
export const encodings: readonly (readonly [string, (value: Buffer) => string | Buffer])[] = [
  ['raw', (value) => value],
  ['base64', (value) => value.toString('base64')],
  ['base64, one byte on', (value) => Buffer.concat([Buffer.from('x'), value]).toString('base64')],
  ['base64, two bytes on', (value) => Buffer.concat([Buffer.from('xy'), value]).toString('base64')],
  ['base64url', (value) => value.toString('base64url')],
  ['base64url, one byte on', (value) => Buffer.concat([Buffer.from('x'), value]).toString('base64url')],
  ['base64url, two bytes on', (value) => Buffer.concat([Buffer.from('xy'), value]).toString('base64url')],
  ['hex', (value) => value.toString('hex')],
  ['hex in capitals', (value) => value.toString('hex').toUpperCase()],
  ['percent', percentEncoded],
  ['percent in small letters', (value) => escapedBy(value, '%')],
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
