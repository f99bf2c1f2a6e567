// Any UTF-16 text of one code point, lone surrogates included: the `binary` unit of fast-check builds a table of all 1.1
// million of them, which stays in memory.
import * as fc from 'fast-check';

export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xffff }),
    fc.integer({ min: 0x1_0000, max: 0x10_ffff }),
  )
  .map((codePoint) => String.fromCodePoint(codePoint));
