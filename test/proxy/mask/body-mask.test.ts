// A secret in a body is masked at the same length, however the body comes in pieces, and what cannot be a secret any
// more waits for nothing. The reference reads the whole body again from each of its bytes.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyMask } from '../../../src/proxy/mask/body-mask.ts';
import { compileMask } from '../../../src/proxy/mask/mask.ts';
import { compileNeedles, type NeedleSet } from '../../../src/proxy/mask/needle-set.ts';
import { runs } from '../../support/run-size.ts';

const secret = 'sesame-open-now';

function collect(
  mask: NeedleSet,
  pieces: readonly Buffer[],
): { readonly out: string; readonly places: number } {
  const body = new BodyMask(mask);
  const out: Buffer[] = [];
  const emit = (piece: Buffer): void => void out.push(Buffer.from(piece));
  for (const piece of pieces) body.push(Buffer.from(piece), emit);
  body.end(emit);
  return { out: Buffer.concat(out).toString('latin1'), places: body.ranges };
}

function masked(text: string, ...values: string[]): string {
  return collect(compileMask(values.length > 0 ? values : [secret]), [Buffer.from(text, 'latin1')]).out;
}

const stars = (text: string): string => '*'.repeat(text.length);

/** Cuts `bytes` behind each of `cuts`. */
function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
}

// The reference. One symbol for what encodings write in two ways, as for heads.
const fold = (char: string): string => ({ ' ': '+', '-': '+', _: '/' })[char] ?? char;
const escapeAt = (text: string, at: number): string | undefined => {
  const digits = /^%([0-9a-f]{2})/i.exec(text.slice(at, at + 3))?.[1];
  return digits === undefined ? undefined : String.fromCharCode(Number.parseInt(digits, 16));
};

/** Where `needle` ends if it stands at `at`, read as it stands up to `plainTo` and with escapes undone behind. */
function endOf(text: string, needle: string, at: number, plainTo: number): number {
  let end = at;
  for (let i = 0; i < needle.length; i += 1) {
    const escaped = end >= plainTo ? escapeAt(text, end) : undefined;
    if (escaped !== undefined && fold(escaped) === fold(needle.charAt(i))) end += 3;
    else if (escaped === undefined && end < text.length && fold(text.charAt(end)) === fold(needle.charAt(i)))
      end += 1;
    else return -1;
  }
  return end;
}

function reference(text: string, needles: readonly string[]): string {
  const hidden = [...text];
  for (let at = 0; at < text.length; at += 1)
    for (const needle of needles)
      for (let plainTo = at; plainTo <= text.length; plainTo += 1) {
        const end = endOf(text, needle, at, plainTo);
        if (end > 0) hidden.fill('*', at, end);
      }
  return hidden.join('');
}

const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`;

/** `text` with an escape for each byte whose bit is set in `escaped`, without its first `cut` bytes. */
function spell(text: string, escaped: number, cut: number): string {
  const from = cut % (text.length * 4) < text.length ? cut % text.length : 0;
  return [...text.slice(from)].map((char, i) => ((escaped >> i) & 1 ? hex(char) : char)).join('');
}

/** What left with each piece, and at the end. */
function stepwise(pieces: readonly string[], ...values: string[]): string[] {
  const body = new BodyMask(compileMask(values.length > 0 ? values : [secret]));
  const left = pieces.map((piece) => {
    let out = '';
    body.push(Buffer.from(piece), (emitted) => void (out += emitted.toString('latin1')));
    return out;
  });
  let last = '';
  body.end((emitted) => void (last += emitted.toString('latin1')));
  return [...left, last];
}

describe('a secret in a body', () => {
  const awkward = 'p/q+r=s&t "u:v~(w)*!';
  const forms: readonly (readonly [string, string])[] = [
    ['raw', awkward],
    ['as a component of a URL', encodeURIComponent(awkward)],
    ['as a URL, where delimiters stay', encodeURI(awkward)],
    ['with each byte escaped', [...awkward].map(hex).join('')],
    ['as base64', Buffer.from(awkward).toString('base64').slice(0, 26)],
    ['as base64url', Buffer.from(awkward).toString('base64url').slice(0, 26)],
    ['as hex', Buffer.from(awkward).toString('hex')],
    ['as a string of JSON', JSON.stringify(awkward).slice(1, -1)],
    [
      'as a string of JSON that is safe in HTML',
      JSON.stringify(awkward).slice(1, -1).replace('&', '\\u0026'),
    ],
    ['as a string of JSON that is plain ASCII letters', 'p/q\\u002Br=s\\u0026t \\u0022u:v~(w)*!'],
    ['as a string of JSON without what HTML reads', 'p/q+r\\u003ds\\u0026t \\"u:v~(w)*!'],
    ['as a string of JSON without quotes', 'p\\/q+r=s\\u0026t \\u0022u:v~(w)*!'],
    ['as text of HTML', 'p/q+r=s&amp;t &quot;u:v~(w)*!'],
    ['as text of HTML by numbers', 'p/q+r=s&amp;t &#34;u:v~(w)*!'],
    ['as text of HTML without plus signs', 'p/q&#43;r=s&amp;t &#34;u:v~(w)*!'],
    ['as text of HTML that is safe in attributes', 'p/q+r&#x3D;s&amp;t &quot;u:v~(w)*!'],
    ['as text of HTML that is safe in tags', 'p&#x2F;q+r&#x3D;s&amp;t &quot;u:v~(w)*!'],
  ];

  it.each(forms)('%s is masked wherever the body is cut', (_, form) => {
    const text = Buffer.from(`{"a":"${form}"}`);
    const expected = { out: `{"a":"${stars(form)}"}`, places: 1 };
    const mask = compileMask([awkward]);
    for (let at = 0; at <= text.length; at += 1)
      expect(collect(mask, [text.subarray(0, at), text.subarray(at)])).toEqual(expected);
    expect(
      collect(
        mask,
        [...text].map((byte) => Buffer.of(byte)),
      ),
    ).toEqual(expected);
  });

  it.each([0, 1, 2, 3, 4, 5])('is masked inside the base64 of a longer text, %i bytes in', (shift) => {
    const encoded = Buffer.from(`${'u'.repeat(shift)}${secret}xyz`).toString('base64');
    const left = Buffer.from(masked(encoded).replaceAll('*', 'A'), 'base64').toString('latin1');
    expect(left).toHaveLength(shift + secret.length + 3);
    expect(left).not.toContain(secret.slice(1, 5));
    expect(left).not.toContain(secret.slice(-5, -1));
  });

  it('is masked each time, and counted; what touches is one place', () => {
    const text = Buffer.from(`${secret},${secret}${secret}.`);
    const expected = { out: `${stars(secret)},${stars(secret + secret)}.`, places: 2 };
    expect(collect(compileMask([secret]), [text])).toEqual(expected);
  });

  it('that overlaps itself leaves nothing', () => {
    expect(masked('abababababababab', 'abababab')).toBe(stars('abababababababab'));
  });

  it('inside a longer secret leaves nothing of either', () => {
    const bearer = `Bearer ${secret}`;
    expect(masked(`${bearer} ${secret}`, secret, bearer)).toBe(`${stars(bearer)} ${stars(secret)}`);
  });

  it('that is short enough to match by chance stays', () => {
    expect(masked('1234567', '1234567')).toBe('1234567');
  });
});

describe('what is held back', () => {
  it('is the beginning of a secret at the end of a piece, and no more', () => {
    expect(stepwise(['data: a sesame-op', 'en-now b'])).toEqual(['data: a ', `${stars(secret)} b`, '']);
  });

  it('is nothing of an event that ends as events do', () => {
    const events = ['data: sesame-open-no\n\n', 'data: %7\n\n', 'data: %\n\n', '{"a":"sesam"}\n'];
    expect(stepwise(events)).toEqual([...events, '']);
  });

  it('leaves as soon as the next byte tells', () => {
    expect(stepwise(['sesame', '-open', '!', 'x'])).toEqual(['', '', 'sesame-open!', 'x', '']);
  });

  it('leaves down to what may still begin one', () => {
    expect(stepwise(['ababab', 'x'], 'ababacab')).toEqual(['ab', 'ababx', '']);
  });

  it('is half an escape too', () => {
    expect(stepwise(['a%7', '3esame-open-now', 'a%', '7', 'x'])).toEqual([
      'a',
      stars('%73esame-open-now'),
      'a',
      '',
      '%7x',
      '',
    ]);
  });

  it('leaves when the body is whole', () => {
    expect(stepwise(['a sesame'])).toEqual(['a ', 'sesame']);
  });

  it('never leaves when the body breaks off', () => {
    expect(stepwise(['a sesame']).slice(0, -1)).toEqual(['a ']);
  });

  it('keeps no more of a piece than that', () => {
    const body = new BodyMask(compileMask([secret]));
    const piece = Buffer.from(`${'x'.repeat(65_536)}sesame`);
    const left: Buffer[] = [];
    body.push(piece, (emitted) => void left.push(emitted));
    body.end((emitted) => void left.push(emitted));
    expect(left.map(({ length }) => length)).toEqual([65_536, 6]);
    expect(left[1]?.buffer).not.toBe(piece.buffer);
  });
});

// Each byte of such a body is alike the beginning of a needle, and each piece of it ends within one.
describe('a body that is made of likenesses', () => {
  const alike = Array.from({ length: 64 }, (_, i) => `${'a'.repeat(4_000)}x${i}`);
  const mask = compileMask(alike);
  it.each([
    ['as they stand', 'a'.repeat(65_536), 65_536],
    ['escaped', '%61'.repeat(21_845), 65_536],
    ['escaped in turns', '%61a'.repeat(16_384), 65_536],
    ['in pieces of 16 bytes', 'a'.repeat(65_536), 16],
  ])('%s costs no more than a few times its length', (_, text, size) => {
    const bytes = Buffer.from(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (__, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    const start = process.cpuUsage();
    expect(collect(mask, pieces).out).toHaveLength(bytes.length);
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(1_000);
  });
});

// So long that a cost for each byte of them would show.
describe('a body that goes on as a long secret', () => {
  const seconds = (mask: NeedleSet, pieces: readonly Buffer[]): number => {
    const start = process.cpuUsage();
    collect(mask, pieces);
    return process.cpuUsage(start).user / 1_000_000;
  };

  it('in pieces of a byte is not copied for each of them', () => {
    const text = Array.from({ length: 60_000 }, (_, i) => i.toString(36)).join('');
    const pieces = [...text].slice(0, -1).map((char) => Buffer.from(char));
    expect(seconds(compileNeedles([text]), pieces)).toBeLessThan(3);
  });

  it('of escapes is not walked back through for each of them', () => {
    const escapes = '%61'.repeat(20_000);
    expect(seconds(compileNeedles([escapes]), [Buffer.from(escapes.repeat(2))])).toBeLessThan(1);
  });
});

// Each reference may continue a value, so that the text from there on is also read with references decoded.
describe('a body that alternates between escapes and references', () => {
  const body = Buffer.from(`${'%78%79'.repeat(9_000)}${'%78&#120;'.repeat(60_000)}`);
  const pieces = cutAt(body, [65_536, 131_072, 262_144]);
  const cpuOf = (value: string): number => {
    const mask = compileMask([value]);
    const before = process.cpuUsage();
    expect(collect(mask, pieces).out).toHaveLength(body.length);
    return process.cpuUsage(before).user;
  };

  it('costs about as much with a long value as with a short one', () => {
    const short = Math.min(cpuOf('xyabcdq7Zk'), cpuOf('xyabcdq7Zk'));
    expect(cpuOf(`xyabcd${'q7Zk'.repeat(2_000)}`)).toBeLessThan(8 * short + 50_000);
  });
});

describe('for any needles and any body', () => {
  const unit = fc.constantFrom('a', 'b', '4', '1', '-', '6');
  const needles = fc.array(fc.string({ unit, minLength: 4, maxLength: 9 }), { minLength: 1, maxLength: 3 });
  // Few symbols, signs that eat into what follows, and needles in every spelling.
  const filler = fc.constantFrom(
    '',
    'a',
    '4',
    '6',
    '%',
    '%4',
    '%6',
    '%%',
    ' ',
    'x',
    '%61',
    '%34',
    '%25',
    '%2B',
  );
  const spelled = fc.tuple(fc.nat(), fc.oneof(fc.constant(0), fc.nat(511)), fc.nat());
  const parts = fc.array(fc.tuple(filler, fc.option(spelled)), { minLength: 1, maxLength: 8 });
  type Parts = typeof parts extends fc.Arbitrary<infer T> ? T : never;
  const write = (texts: readonly string[], all: Parts): string =>
    all
      .map(([before, spelling]) => {
        const [pick, escaped, cut] = spelling ?? [];
        return (
          before + (pick === undefined ? '' : spell(texts[pick % texts.length] ?? '', escaped ?? 0, cut ?? 0))
        );
      })
      .join('');

  it('the same is masked as by reading the whole body from each of its bytes', () => {
    fc.assert(
      fc.property(needles, parts, (texts, all) => {
        const text = write(texts, all);
        const { out } = collect(compileNeedles(texts), [Buffer.from(text, 'latin1')]);
        expect(out).toBe(reference(text, texts));
      }),
      { numRuns: runs(3_000) },
    );
  });

  it('any pieces give what one piece gives', () => {
    fc.assert(
      fc.property(needles, parts, fc.array(fc.nat(), { maxLength: 12 }), (texts, all, cuts) => {
        const mask = compileNeedles(texts);
        const bytes = Buffer.from(write(texts, all), 'latin1');
        const whole = collect(mask, [bytes]);
        expect(collect(mask, cutAt(bytes, cuts))).toEqual(whole);
        expect(
          collect(
            mask,
            [...bytes].map((byte) => Buffer.of(byte)),
          ),
        ).toEqual(whole);
      }),
      { numRuns: runs(3_000) },
    );
  });

  // A needle that holds escapes itself reads as another text once they are undone: the reference cannot tell which are its own.
  const odd = fc.string({
    unit: fc.constantFrom('a', 'b', '4', '1', '-', '6', '%'),
    minLength: 4,
    maxLength: 11,
  });
  const undo = (text: string): string =>
    text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  const folded = (text: string): string => [...text].map(fold).join('');

  it('of one with percent signs nothing is left, read as it stands or unescaped, in whatever pieces it comes', () => {
    const all = fc.array(odd, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(all, parts, fc.array(fc.nat(), { maxLength: 12 }), (texts, spelled, cuts) => {
        const mask = compileNeedles(texts);
        const bytes = Buffer.from(write(texts, spelled), 'latin1');
        const whole = collect(mask, [bytes]);
        expect(collect(mask, cutAt(bytes, cuts))).toEqual(whole);
        for (const text of texts) {
          expect(folded(whole.out)).not.toContain(folded(text));
          expect(folded(undo(whole.out))).not.toContain(folded(text));
        }
      }),
      { numRuns: runs(3_000) },
    );
  });

  it.each([
    ['that ends as an escape begins, at the end of a body', 'sesame-open%6', '%73esame-open%6'],
    ['that ends as an escape begins, before what makes it one', 'sesame-open%', '%73esame-open%41'],
    ['that begins as an escape of few bytes', '%116-sesame', '%25116-sesame'],
  ])('a secret %s', (_, text, body) => {
    const [before, ...rest] = masked(`${body}`, text).split('*');
    expect([before, rest.at(-1)]).toEqual(['', body.slice(body.length - (body.endsWith('%41') ? 2 : 0))]);
  });
});
