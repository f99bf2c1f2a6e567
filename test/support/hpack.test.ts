// HPACK against the examples of RFC 7541, Appendix C.
import { describe, expect, it } from 'vitest';
import { encodeBlock, encodeInteger, HpackDecoder, indexed, literal, tableSize } from './hpack.ts';

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const read = (decoder: HpackDecoder, block: Buffer): string[] =>
  decoder.decode(block).map(({ name, value }) => `${name}: ${value}`);

describe('HPACK', () => {
  it('encodes integers as C.1', () => {
    expect(encodeInteger(10, 5, 0)).toEqual(bytes('0a'));
    expect(encodeInteger(1337, 5, 0)).toEqual(bytes('1f 9a 0a'));
    expect(encodeInteger(42, 8, 0)).toEqual(bytes('2a'));
  });

  it('reads the requests of C.4: Huffman, and a table that grows', () => {
    const decoder = new HpackDecoder();
    const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'];
    expect(read(decoder, bytes('8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'))).toEqual(first);
    expect(read(decoder, bytes('8286 84be 5886 a8eb 1064 9cbf'))).toEqual([
      ...first,
      'cache-control: no-cache',
    ]);
    expect(read(decoder, bytes('8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf'))).toEqual([
      ':method: GET',
      ':scheme: https',
      ':path: /index.html',
      ':authority: www.example.com',
      'custom-key: custom-value',
    ]);
  });

  it('distinguishes never-indexed fields, and writes each representation as C.2', () => {
    expect(literal('custom-key', 'custom-header', 'indexing')).toEqual(
      bytes('400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'),
    );
    expect(literal(4, '/sample/path')).toEqual(bytes('040c 2f73 616d 706c 652f 7061 7468'));
    expect(literal('password', 'secret', 'never')).toEqual(
      bytes('1008 7061 7373 776f 7264 0673 6563 7265 74'),
    );
    const block = encodeBlock([['a', '1', 'never'], ['b', '2'], ['c', '3', 'indexing'], indexed(62)]);
    expect(new HpackDecoder().decode(block).map(({ isNeverIndexed }) => isNeverIndexed)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('evicts the oldest entries of a full table', () => {
    // Each entry counts 32 + 2 bytes: two fit into 70.
    const decoder = new HpackDecoder(70);
    const add = (name: string): Buffer => literal(name, name, 'indexing');
    expect(read(decoder, Buffer.concat([add('a'), add('b'), add('c'), indexed(62), indexed(63)]))).toEqual([
      'a: a',
      'b: b',
      'c: c',
      'c: c',
      'b: b',
    ]);
    expect(() => read(decoder, indexed(64))).toThrow(/index 64/);
    expect(() => read(decoder, tableSize(71))).toThrow(/table size 71/);
    expect(() => read(decoder, Buffer.concat([tableSize(0), indexed(62)]))).toThrow(/index 62/);
  });

  it.each([
    ['a truncated string', '0001 6105 6262'],
    ['padding of zeros', '0001 6181 18'],
    ['padding of a whole byte', '0001 6182 1fff'],
    ['EOS in a string', '0001 6184 ffff ffff'],
    ['index 0', '80'],
    ['an endless integer', 'ff ff ff ff ff ff ff ff ff ff 01'],
  ])('does not read %s', (_, hex) => {
    expect(() => read(new HpackDecoder(), bytes(hex))).toThrow(/^HPACK: /);
  });
});
