import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidJson } from '../../../../../src/platform/traces/ingestion/json/invalid-json.ts';
import {
  JsonScanner,
  MAX_DEPTH,
  type ScanHandler,
  type Tap,
} from '../../../../../src/platform/traces/ingestion/json/json-scanner.ts';
import { runs } from '../../../../support/run-size.ts';

/** The pieces of a text, cut at the given places. */
function cut(bytes: Buffer, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1))), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
}

function scan(pieces: readonly Uint8Array[], handler: ScanHandler, depth = 2): void {
  const scanner = new JsonScanner(handler, depth);
  for (const piece of pieces) scanner.push(piece);
  scanner.end();
}

const silent: ScanHandler = { open: () => undefined, close: () => undefined };

/** Each member of the root object with its bytes. */
function membersOf(pieces: readonly Uint8Array[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = Object.create(null);
  scan(pieces, {
    open(depth, name): Tap | undefined {
      if (depth !== 1 || name === undefined) return undefined;
      found[name] = '';
      const parts: Buffer[] = [];
      return {
        write(bytes) {
          parts.push(Buffer.from(bytes));
          found[name] = Buffer.concat(parts).toString('utf8');
        },
      };
    },
    close: () => undefined,
  });
  return { ...found };
}

const places = fc.array(fc.nat(), { maxLength: 20 });
const spaced = (text: string): fc.Arbitrary<string> =>
  fc.constantFrom(text, text.replaceAll(',"', ' ,\n\t"'), ` ${text}\r\n`);

describe('a scanned text', () => {
  it('is taken when JSON.parse takes it, wherever its pieces end', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false } as never).chain(spaced), places, (text, where) => {
        expect(() => scan(cut(Buffer.from(text), where), silent)).not.toThrow();
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('is refused when JSON.parse refuses it', () => {
    const damaged = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', ',', '"', '}', ']', '0', '-', '.', 'e', '\\', ':', 'x', '\u0001', 'true'),
    );
    fc.assert(
      fc.property(damaged, places, ([text, at, inserted], where) => {
        const place = at % (text.length + 1);
        const changed = text.slice(0, place) + inserted + text.slice(place + (inserted === '' ? 1 : 0));
        const isJson = ((): boolean => {
          try {
            JSON.parse(changed);
            return true;
          } catch {
            return false;
          }
        })();
        const scanned = (): void => scan(cut(Buffer.from(changed), where), silent);
        if (isJson) expect(scanned).not.toThrow();
        else expect(scanned).toThrow(InvalidJson);
      }),
      { numRuns: runs(5_000) },
    );
  });

  it('gives the bytes of each member as they were sent', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(value, places, (object, where) => {
        const text = JSON.stringify(object);
        const members = membersOf(cut(Buffer.from(text), where));
        const expected = Object.entries(JSON.parse(text)).map(([name, one]) => [name, JSON.stringify(one)]);
        expect(members).toEqual(Object.fromEntries(expected));
      }),
      { numRuns: runs(2_000) },
    );
  });

  it.each([
    '',
    ' ',
    '{',
    '{"a"',
    '"a',
    '1.',
    '-',
    '01',
    '1e',
    '[1,]',
    '{"a":1,}',
    '{,}',
    'nul',
    'NaN',
    '1 2',
    '"\\x"',
    '"\\u12g4"',
  ])('that is %j is refused', (text) => expect(() => scan([Buffer.from(text)], silent)).toThrow(InvalidJson));

  it.each([[[0x22, 0xff, 0x22]], [[0x22, 0xc3, 0x22]], [[0x22, 0xed, 0xa0, 0x80, 0x22]], [[0x22, 0xc3]]])(
    'with the bytes %j is not UTF-8',
    (bytes) =>
      expect(() =>
        scan(
          [...bytes].map((byte) => Uint8Array.of(byte)),
          silent,
        ),
      ).toThrow(InvalidJson),
  );

  it('may be as deep as the limit, and not deeper', () => {
    const nested = (depth: number): Buffer => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
    expect(() => scan([nested(MAX_DEPTH)], silent)).not.toThrow();
    expect(() => scan([nested(MAX_DEPTH + 1)], silent)).toThrow(/deeper/);
  });
});
