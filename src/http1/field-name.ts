// Field names as small integers, recognised from bytes without creating a string.
import { byteAt, lowerAt } from './byte-class.ts';

/** The names that the proxy acts on; every other name is `other`. `proxyOther` is any other `Proxy-*`. */
export const Field = {
  other: 0,
  host: 1,
  contentLength: 2,
  transferEncoding: 3,
  connection: 4,
  keepAlive: 5,
  proxyConnection: 6,
  proxyAuthorization: 7,
  proxyAuthenticate: 8,
  proxyOther: 9,
  te: 10,
  trailer: 11,
  upgrade: 12,
  expect: 13,
  altSvc: 14,
  http2Settings: 15,
  authorization: 16,
  wwwAuthenticate: 17,
} as const;

export type FieldId = (typeof Field)[keyof typeof Field];

/** Some ids, one bit each. */
export type IdSet = number;

export function idSet(ids: readonly FieldId[]): IdSet {
  return ids.reduce<IdSet>((set, id) => set | (1 << id), 0);
}

type KnownName = { readonly name: string; readonly id: FieldId };

/** `contentLength` -> `content-length`. */
const knownNames: readonly KnownName[] = Object.entries(Field)
  .filter(([, id]) => id !== Field.other && id !== Field.proxyOther)
  .map(([key, id]) => ({ name: key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), id }));

const UNDERSCORE_BYTE = 0x5f;
const HYPHEN_BYTE = 0x2d;
const P_LOWER = 0x70;
const PROXY_PREFIX = 'proxy-';

// At most one known name has a given length and first letter, so one comparison settles a name.
const SLOTS_PER_LENGTH = 32;
const NAME_SLOTS = 512;
const slots: readonly (KnownName | undefined)[] = createSlots();

/** The id of a field name in `bytes[start, end)`, in any case. Creates no string. */
export function fieldIdOf(bytes: Buffer, start: number, end: number): FieldId {
  if (end <= start) return Field.other;
  const first = lowerAt(bytes, start);
  const candidate = slots[slotOf(end - start, first)];
  if (candidate !== undefined && isFieldNamed(bytes, start, end, candidate.name)) return candidate.id;
  return first === P_LOWER && startsWith(bytes, start, end, PROXY_PREFIX) ? Field.proxyOther : Field.other;
}

/** True if `bytes[start, end)` spells `lowerName` (lower-case ASCII) in any case. */
export function isFieldNamed(bytes: Buffer, start: number, end: number, lowerName: string): boolean {
  return end - start === lowerName.length && startsWith(bytes, start, end, lowerName);
}

/** As isFieldNamed, with `_` read as `-` on both sides, as CGI-like upstreams read `X_Api_Key`. */
export function isFieldNamedLoosely(bytes: Buffer, start: number, end: number, lowerName: string): boolean {
  if (end - start !== lowerName.length) return false;
  for (let i = 0; i < lowerName.length; i++) {
    if (hyphenated(lowerAt(bytes, start + i)) !== hyphenated(lowerName.charCodeAt(i))) return false;
  }
  return true;
}

/** Whether `bytes[start, end)` spells one of some names, compared as isFieldNamedLoosely does. */
export type NameTest = (bytes: Buffer, start: number, end: number) => boolean;

/** Compiles names in lower case. Nearly every other name already differs from them in its length or first letter. */
export function compileNames(lowerNames: readonly string[]): NameTest {
  // 1 where a name begins with such a letter and has such a length, modulo the size of the table.
  const starts = new Uint8Array(NAME_SLOTS);
  for (const name of lowerNames) starts[startOf(name.length, name.charCodeAt(0))] = 1;
  return (bytes, start, end) => {
    if (starts[startOf(end - start, lowerAt(bytes, start))] === 0) return false;
    for (const name of lowerNames) if (isFieldNamedLoosely(bytes, start, end, name)) return true;
    return false;
  };
}

/** True if both ranges of `bytes` spell the same name in any case. */
export function isSameName(bytes: Buffer, a: number, aEnd: number, b: number, bEnd: number): boolean {
  if (aEnd - a !== bEnd - b) return false;
  for (let i = 0; a + i < aEnd; i++) {
    if (lowerAt(bytes, a + i) !== lowerAt(bytes, b + i)) return false;
  }
  return true;
}

/** True if `bytes[start, end)` is exactly `text` (ASCII), case and all. */
export function isExactly(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    if (byteAt(bytes, start + i) !== text.charCodeAt(i)) return false;
  }
  return true;
}

function startsWith(bytes: Buffer, start: number, end: number, lowerText: string): boolean {
  if (end - start < lowerText.length) return false;
  for (let i = 0; i < lowerText.length; i++) {
    if (lowerAt(bytes, start + i) !== lowerText.charCodeAt(i)) return false;
  }
  return true;
}

function startOf(length: number, first: number): number {
  return (length * SLOTS_PER_LENGTH + (hyphenated(first) & (SLOTS_PER_LENGTH - 1))) & (NAME_SLOTS - 1);
}

function hyphenated(byte: number): number {
  return byte === UNDERSCORE_BYTE ? HYPHEN_BYTE : byte;
}

function slotOf(length: number, lowerFirst: number): number {
  return length * SLOTS_PER_LENGTH + (lowerFirst & (SLOTS_PER_LENGTH - 1));
}

function createSlots(): (KnownName | undefined)[] {
  const longest = Math.max(...knownNames.map(({ name }) => name.length));
  const table = Array.from<KnownName | undefined>({ length: (longest + 1) * SLOTS_PER_LENGTH }).fill(
    undefined,
  );
  for (const known of knownNames) {
    const slot = slotOf(known.name.length, known.name.charCodeAt(0));
    if (table[slot] !== undefined) throw new Error(`two known field names share a slot: ${known.name}`);
    table[slot] = known;
  }
  return table;
}
