// HPACK (RFC 7541) for the test peers. A test chooses the representation of each field, so that a bomb is only a
// list. Decoding is complete and reports which fields arrived as never indexed. It shares no code with src or nghttp2.
//
//   encodeBlock([[':path', '/'], ['cookie', 'a=b', 'never'], indexed(62)])   -> Buffer
//   new HpackDecoder().decode(block)                                          -> Field[], stateful
import { decodeHuffman } from './hpack-huffman.ts';

export type Field = { readonly name: string; readonly value: string; readonly isNeverIndexed: boolean };
/** `plain`: literal without indexing; `indexing`: enters the dynamic table; `never`: never indexed. */
export type Indexing = 'plain' | 'indexing' | 'never';
/** A field with its representation, or raw bytes of the block. */
export type SentField = readonly [name: string, value: string, indexing?: Indexing | undefined] | Buffer;

const PATTERN: Readonly<Record<Indexing, readonly [bits: number, prefix: number]>> = {
  plain: [0x00, 4],
  indexing: [0x40, 6],
  never: [0x10, 4],
};

export function encodeBlock(fields: readonly SentField[]): Buffer {
  return Buffer.concat(fields.map((field) => (Buffer.isBuffer(field) ? field : literal(...field))));
}

/** A literal field; a number as its name is an index into the tables. */
export function literal(name: string | number, value: string, indexing: Indexing = 'plain'): Buffer {
  const [bits, prefix] = PATTERN[indexing];
  if (typeof name === 'number') return Buffer.concat([encodeInteger(name, prefix, bits), encodeText(value)]);
  return Buffer.concat([Buffer.of(bits), encodeText(name), encodeText(value)]);
}

/** An indexed field: 1 to 61 in the static table, from 62 in the dynamic table, newest first. */
export function indexed(index: number): Buffer {
  return encodeInteger(index, 7, 0x80);
}

/** A dynamic table size update. */
export function tableSize(bytes: number): Buffer {
  return encodeInteger(bytes, 5, 0x20);
}

export function encodeInteger(value: number, prefix: number, bits: number): Buffer {
  const most = 2 ** prefix - 1;
  if (value < most) return Buffer.of(bits | value);
  const bytes = [bits | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  bytes.push(left);
  return Buffer.from(bytes);
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeInteger(bytes.length, 7, 0), bytes]);
}

/** One for each direction of a connection: the dynamic table has the lifetime of the connection. */
export class HpackDecoder {
  readonly #limit: number;
  #table: Field[] = [];
  #size = 0;
  #most: number;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(limit = 4096) {
    this.#limit = limit;
    this.#most = limit;
  }

  decode(block: Buffer): Field[] {
    this.#block = block;
    this.#at = 0;
    const fields: Field[] = [];
    while (this.#at < block.length) {
      const first = block.readUInt8(this.#at);
      if (first >= 0x80) fields.push(this.#lookup(this.#integer(7)));
      else if (first >= 0x40) fields.push(this.#remember(this.#literal(6, false)));
      else if (first >= 0x20) this.#resize(this.#integer(5), fields.length);
      else fields.push(this.#literal(4, first >= 0x10));
    }
    return fields;
  }

  #literal(prefix: number, isNeverIndexed: boolean): Field {
    const index = this.#integer(prefix);
    const name = index === 0 ? this.#text() : this.#lookup(index).name;
    return { name, value: this.#text(), isNeverIndexed };
  }

  #lookup(index: number): Field {
    const [name, value] = STATIC_TABLE[index - 1] ?? [];
    if (name !== undefined) return { name, value: value ?? '', isNeverIndexed: false };
    const field = this.#table[index - 1 - STATIC_TABLE.length];
    if (field === undefined) throw new Error(`HPACK: no field has the index ${index}`);
    return field;
  }

  #remember(field: Field): Field {
    this.#table.unshift(field);
    this.#size += sizeOf(field);
    this.#evict();
    return field;
  }

  #resize(bytes: number, fieldsBefore: number): void {
    if (bytes > this.#limit) throw new Error(`HPACK: table size ${bytes} exceeds ${this.#limit}`);
    if (fieldsBefore > 0) throw new Error('HPACK: table size update after a field');
    this.#most = bytes;
    this.#evict();
  }

  #evict(): void {
    while (this.#size > this.#most) {
      const oldest = this.#table.pop();
      this.#size -= oldest === undefined ? this.#size : sizeOf(oldest);
    }
  }

  #integer(prefix: number): number {
    const most = 2 ** prefix - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (value > Number.MAX_SAFE_INTEGER) throw new Error('HPACK: an integer that is too large');
      if (byte < 0x80) return value;
    }
  }

  #text(): string {
    const isHuffman = this.#block[this.#at] !== undefined && this.#block.readUInt8(this.#at) >= 0x80;
    const length = this.#integer(7);
    const bytes = this.#block.subarray(this.#at, this.#at + length);
    if (bytes.length < length) throw new Error('HPACK: the block ends inside a string');
    this.#at += length;
    return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1');
  }

  #byte(): number {
    const byte = this.#block[this.#at++];
    if (byte === undefined) throw new Error('HPACK: the block ends inside a field');
    return byte;
  }
}

/** The size of a field in tables and in SETTINGS_MAX_HEADER_LIST_SIZE. */
export function sizeOf(field: Pick<Field, 'name' | 'value'>): number {
  return field.name.length + field.value.length + 32;
}

/** RFC 7541 Appendix A, a line for each field. */
const STATIC_TABLE: readonly (readonly string[])[] = `\
:authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|\
:status 206|:status 304|:status 400|:status 404|:status 500|accept-charset|accept-encoding gzip, deflate|\
accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|\
content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|\
cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|\
last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|\
server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate`
  .split('|')
  .map((line) => /^(:?[a-z-]+) ?(.*)$/.exec(line)?.slice(1) ?? []);
