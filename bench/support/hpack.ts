// HPACK (RFC 7541) for a benchmark: writes fields that are equal on every request, as a client with a dynamic table does,
// and reads any block, except octets that no header here has (Huffman codes over 15 bits). A block that equals an earlier
// one byte for byte, with the same table before it, is not decoded again.

export type Field = readonly [name: string, value: string];

const STATIC: readonly Field[] = (
  ':authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|' +
  ':status=204|:status=206|:status=304|:status=400|:status=404|:status=500|accept-charset|' +
  'accept-encoding=gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|' +
  'authorization|cache-control|content-disposition|content-encoding|content-language|content-length|' +
  'content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|' +
  'if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards|' +
  'proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|' +
  'strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate'
)
  .split('|')
  .map((each) => each.split('='))
  .map(([name = '', value = '']) => [name, value]);

/** The code is canonical: the code words follow from the number of bits of each symbol. */
const SYMBOLS_BY_BITS: Readonly<Record<number, string>> = {
  5: '012aceiost',
  6: ' %-./3456789=A_bdfghlmnpru',
  7: ':BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz',
  8: '&*,;XZ',
  10: '!"()?',
  11: "'+|",
  12: '#>',
  13: '\0$@[]~',
  14: '^}',
  15: '<`{',
};
const symbols: ReadonlyMap<number, string> = huffmanSymbols();
export const DEFAULT_TABLE_SIZE = 4096;
const ENTRY_OVERHEAD = 32;
const MAX_KNOWN = 256;

export type Blocks = { readonly first: Buffer; readonly next: Buffer };

/** The first block of a connection, and the block of all later requests. Fields that change stay literal. */
export function encodeBlocks(fields: readonly Field[], hasTable: boolean): Blocks {
  const shared = hasTable ? fields.filter(([name]) => name !== ':path') : [];
  return {
    first: encodeWithTable(fields, shared, 'insert', hasTable),
    next: encodeWithTable(fields, shared, 'use', hasTable),
  };
}

/**
 * A block whose `shared` fields are in the table: inserted by the first block of a connection, used by all later ones. A peer
 * without a table gets a table size update to 0 first.
 */
export function encodeWithTable(
  fields: readonly Field[],
  shared: readonly Field[],
  turn: 'insert' | 'use',
  hasTable: boolean,
): Buffer {
  const inserted = shared.filter((field) => staticIndex(field) === 0);
  const last = STATIC.length + inserted.length;
  const block = encodeFields(fields, (field) => {
    const at = inserted.findIndex(([name, value]) => name === field[0] && value === field[1]);
    if (at === -1) return literal(field, PASSING);
    return turn === 'insert' ? literal(field, INSERTED) : integer(last - at, 7, 0x80);
  });
  return hasTable || turn === 'use' ? block : Buffer.concat([integer(0, 5, 0x20), block]);
}

/** A block that does not change the table. */
export function encodeLiterals(fields: readonly Field[]): Buffer {
  return encodeFields(fields, (field) => literal(field, PASSING));
}

/** Bits of the index, and the pattern before them. */
const INSERTED = [6, 0x40] as const;
const PASSING = [4, 0] as const;

function encodeFields(fields: readonly Field[], encode: (field: Field) => Buffer): Buffer {
  const blocks = fields.map((field) => {
    const known = staticIndex(field);
    return known === 0 ? encode(field) : integer(known, 7, 0x80);
  });
  return Buffer.concat(blocks);
}

function literal([name, value]: Field, [bits, pattern]: readonly [number, number]): Buffer {
  const index = STATIC.findIndex(([each]) => each === name) + 1;
  const words = index === 0 ? [text(name), text(value)] : [text(value)];
  return Buffer.concat([integer(index, bits, pattern), ...words]);
}

function staticIndex([name, value]: Field): number {
  return STATIC.findIndex(([one, other]) => one === name && other === value) + 1;
}

function integer(value: number, prefixBits: number, pattern: number): Buffer {
  const limit = 2 ** prefixBits - 1;
  if (value < limit) return Buffer.of(pattern | value);
  const octets = [pattern | limit];
  let rest = value - limit;
  for (; rest >= 128; rest >>= 7) octets.push((rest & 127) | 128);
  return Buffer.of(...octets, rest);
}

function text(value: string): Buffer {
  const octets = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(octets.length, 7, 0), octets]);
}

/** Decodes the blocks of one connection in order. Returns the same list for the same block. */
export function createDecoder(): (block: Buffer) => readonly Field[] {
  const table = createTable();
  const known = new Map<string, readonly Field[]>();
  return (block) => {
    const key = block.toString('latin1');
    const found = known.get(key);
    if (found) return found;
    const before = table.changes();
    const fields = decode(block, table);
    // What a block means depends on the table before it.
    if (table.changes() !== before || known.size === MAX_KNOWN) known.clear();
    else known.set(key, fields);
    return fields;
  };
}

type Table = {
  at(index: number): Field;
  insert(field: Field): void;
  resize(limit: number): void;
  changes(): number;
};

function createTable(): Table {
  const entries: Field[] = [];
  let limit = DEFAULT_TABLE_SIZE;
  let size = 0;
  let changes = 0;
  const sizeOf = ([name, value]: Field): number => name.length + value.length + ENTRY_OVERHEAD;
  const evict = (): void => {
    for (
      let last = size > limit ? entries.pop() : undefined;
      last;
      last = size > limit ? entries.pop() : undefined
    )
      size -= sizeOf(last);
  };
  return {
    changes: () => changes,
    at(index) {
      const field = index <= STATIC.length ? STATIC[index - 1] : entries[index - STATIC.length - 1];
      if (field === undefined) throw new Error('a block names a field that is not in the table');
      return field;
    },
    insert(field) {
      if (limit === 0) return;
      changes += 1;
      entries.unshift(field);
      size += sizeOf(field);
      evict();
    },
    resize(next) {
      changes += 1;
      limit = next;
      evict();
    },
  };
}

function decode(block: Buffer, table: Table): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readInteger = (prefixBits: number): number => {
    const limit = 2 ** prefixBits - 1;
    let value = (block[at++] ?? 0) & limit;
    if (value < limit) return value;
    for (let shift = 0; ; shift += 7) {
      const octet = block[at++] ?? 0;
      value += (octet & 127) * 2 ** shift;
      if (octet < 128) return value;
    }
  };
  const readText = (): string => {
    const isHuffman = ((block[at] ?? 0) & 0x80) !== 0;
    const length = readInteger(7);
    const octets = block.subarray(at, (at += length));
    return isHuffman ? decodeHuffman(octets) : octets.toString('latin1');
  };
  const readField = (prefixBits: number): Field => {
    const index = readInteger(prefixBits);
    return [index === 0 ? readText() : table.at(index)[0], readText()];
  };
  while (at < block.length) {
    const octet = block[at] ?? 0;
    if (octet & 0x80) fields.push(table.at(readInteger(7)));
    else if (octet & 0x40) {
      const field = readField(6);
      table.insert(field);
      fields.push(field);
    } else if (octet & 0x20) table.resize(readInteger(5));
    else fields.push(readField(4));
  }
  if (at > block.length) throw new Error('a header block ends within a field');
  return fields;
}

/** Keys are code words with a leading 1, so that 00 and 0 differ. */
function huffmanSymbols(): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  let word = 0;
  for (let bits = 5; bits <= 15; bits += 1) {
    for (const symbol of SYMBOLS_BY_BITS[bits] ?? '') found.set(2 ** bits + word++, symbol);
    word *= 2;
  }
  return found;
}

function decodeHuffman(octets: Buffer): string {
  let decoded = '';
  let word = 1;
  for (const octet of octets) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      word = word * 2 + ((octet >> bit) & 1);
      const symbol = symbols.get(word);
      if (symbol === undefined) continue;
      decoded += symbol;
      word = 1;
    }
  }
  // The rest must be the ones that pad the last octet.
  if (word > 0xff || (word & (word + 1)) !== 0) throw new Error('a text is not valid Huffman code');
  return decoded;
}
