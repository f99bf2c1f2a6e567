// A secret that a host echoes in its head never reaches the client: in every encoded form, wherever it stands, at the
// same length, and the head still says the same about framing.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isHeadError } from '../../../src/http1/head-error.ts';
import { responseFraming } from '../../../src/http1/framing.ts';
import { type ResponseHead, parseResponseHead } from '../../../src/http1/head-parser.ts';
import { MIN_MASKED_BYTES, compileMask, maskResponseHead } from '../../../src/proxy/mask/mask.ts';
import { runs } from '../../support/run-size.ts';

const secret = 'sesame-open-now';
const limits = { maxHeadBytes: 65_536, maxFields: 100, maxTargetBytes: 8_192 };

function parse(text: string): ResponseHead {
  const head = parseResponseHead(Buffer.from(text, 'latin1'), 0, limits);
  if (head === undefined || isHeadError(head)) throw new Error(`does not parse: ${JSON.stringify(text)}`);
  return head;
}

function masked(text: string, ...values: string[]): string {
  const head = parse(text);
  maskResponseHead(head, compileMask(values.length > 0 ? values : [secret]));
  return head.bytes.toString('latin1');
}

const stars = (text: string): string => '*'.repeat(text.length);
const inField = (value: string): string => `HTTP/1.1 200 OK\r\nX-Echo: ${value}\r\nContent-Length: 0\r\n\r\n`;

const percentOfEveryByte = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');

describe('a secret in a response head', () => {
  const awkward = 'p/q+r=s&t u:v~(w)*!';
  const forms: readonly (readonly [string, string, string])[] = [
    ['raw', secret, secret],
    ['raw with every printable sign', awkward, awkward],
    ['as a component of a URL', awkward, encodeURIComponent(awkward)],
    [
      'as a component of a URL, escapes in lower case',
      awkward,
      encodeURIComponent(awkward).replace(/%../g, (e) => e.toLowerCase()),
    ],
    ['as a URL, where delimiters stay', awkward, encodeURI(awkward)],
    ['as a form field, where a space is a plus', 'Bearer abcdef12', 'Bearer+abcdef12'],
    ['as base64', secret, Buffer.from(secret).toString('base64')],
    ['as base64url', '>>>???>>>???', Buffer.from('>>>???>>>???').toString('base64url')],
    ['as hex', secret, Buffer.from(secret).toString('hex')],
    ['as hex in capitals', secret, Buffer.from(secret).toString('hex').toUpperCase()],
    ['as decimal references', 'abcd+efgh=', 'abcd&#43;efgh&#61;'],
    ['as references in hexadecimal', 'abcd+efgh=', 'abcd&#x2B;efgh&#x3D;'],
    ['as references in lower case', 'abcd+efgh=', 'abcd&#x2b;efgh&#x3d;'],
    ['as references with a capital X', 'abcd+efgh=', 'abcd&#X2B;efgh&#X3D;'],
    ['as references with leading zeros', 'abcd+efgh=', 'abcd&#0043;efgh&#x00003d;'],
    ['as references by number and by name', 'abcd+efgh<', 'abcd&#43;efgh&lt;'],
    ['as references of every character', 'sesame-1', '&#115;&#x65;&#115;&#97;&#109;&#0101;&#45;&#x31;'],
    ['as references beside percent escapes', 'abcd+efgh=', 'abcd&#43;efgh%3D'],
    ['as a string of JSON', 'p"q\\r/stuv', 'p\\"q\\\\r/stuv'],
    // The password of `Basic` may contain any character.
    ['as a string of JSON in ASCII', 'p\u00e4ssw\u00f6rt', 'p\\u00e4ssw\\u00f6rt'],
    ['as a string of JSON in ASCII and capitals', 'p\u00e4ssw\u00f6rt', 'p\\u00E4ssw\\u00F6rt'],
    ['as a string of JSON with surrogates', 'p\u00e4ss\u{1f511}', 'p\\u00e4ss\\ud83d\\udd11'],
    ['as references of characters beyond ASCII', 'p\u00e4ss<w\u00f6rt', 'p&#228;ss&lt;w&#246;rt'],
    ['as references of them in hexadecimal', 'p\u00e4ssw\u00f6rt', 'p&#xe4;ssw&#xf6;rt'],
    ['as references of them in capitals', 'p\u00e4ssw\u00f6rt', 'p&#xE4;ssw&#xF6;rt'],
    ['as a string of JSON with its slashes escaped', 'p"q\\r/stuv', 'p\\"q\\\\r\\/stuv'],
  ];
  it.each(forms)('%s is masked', (_, value, form) => {
    const out = masked(inField(`a${form} b`), value);
    expect(out).not.toContain(form);
    expect(out).toBe(inField(`a${stars(form)} b`));
  });

  it.each([0, 1, 2, 3, 4, 5])('is masked inside the base64 of a longer text, %i bytes in', (shift) => {
    const before = 'u'.repeat(shift);
    for (const after of ['', 'x', 'xy', 'xyz']) {
      const encoded = Buffer.from(`${before}${secret}${after}`).toString('base64');
      const out = masked(inField(encoded));
      // Characters at the two edges hold bits of the neighbours and at most four of the secret's.
      const kept = /^X-Echo: ([^*]*)(\*+)([^*]*)$/m.exec(out.replaceAll('\r', ''));
      expect(kept?.[2]?.length).toBeGreaterThanOrEqual(Math.floor((secret.length * 8) / 6) - 2);
      const remains = Buffer.from(`${kept?.[1]}${kept?.[2]?.replaceAll('*', 'A')}${kept?.[3]}`, 'base64');
      expect(
        remains.subarray(before.length + 1, before.length + secret.length - 1).every((b) => b === 0),
      ).toBe(true);
    }
  });

  it('is masked in a field name', () => {
    expect(masked(`HTTP/1.1 200 OK\r\nX-${secret}: 1\r\n\r\n`)).toBe(
      `HTTP/1.1 200 OK\r\nX-${stars(secret)}: 1\r\n\r\n`,
    );
  });

  it('is masked in the reason phrase', () => {
    expect(masked(`HTTP/1.1 200 ${secret}\r\nContent-Length: 0\r\n\r\n`)).toBe(
      `HTTP/1.1 200 ${stars(secret)}\r\nContent-Length: 0\r\n\r\n`,
    );
  });

  it('that spans a name and its value is masked and the line stays a field', () => {
    const out = masked('HTTP/1.1 200 OK\r\nuser: password1\r\nContent-Length: 0\r\n\r\n', 'user: password1');
    expect(out).not.toContain('password1');
    expect(parse(out).fields.count).toBe(2);
  });

  it('is masked each time', () => {
    const out = masked(inField(`${secret},${secret}${secret}`));
    expect(out).toBe(inField(`${stars(secret)},${stars(secret)}${stars(secret)}`));
  });

  it('inside a longer secret leaves nothing of either', () => {
    const out = masked(inField(`Bearer ${secret} ${secret}`), secret, `Bearer ${secret}`);
    expect(out).toBe(inField(`${stars(`Bearer ${secret}`)} ${stars(secret)}`));
  });

  it('that overlaps itself leaves no whole copy', () => {
    expect(masked(inField('abababababababab'), 'abababab')).toBe(inField(stars('abababababababab')));
    expect(masked(inField('ababababababab'), 'abababab')).not.toContain('abababab');
  });

  it('is left alone when it is short enough to match by chance', () => {
    const short = 'a'.repeat(MIN_MASKED_BYTES - 1);
    expect(masked(inField(short), short)).toBe(inField(short));
    const enough = 'a'.repeat(MIN_MASKED_BYTES);
    expect(masked(inField(enough), enough)).toBe(inField(stars(enough)));
  });

  it('is reported, and its absence too', () => {
    expect(maskResponseHead(parse(inField(secret)), compileMask([secret]))).toBe(true);
    expect(maskResponseHead(parse(inField('nothing')), compileMask([secret]))).toBe(false);
  });

  it('leaves the bytes behind the head alone: they are body', () => {
    const text = `${inField(secret)}${secret}`;
    expect(masked(text)).toBe(`${inField(stars(secret))}${secret}`);
  });
});

// Comparing each byte of such a head with each of the secrets would hold up every other client.
describe('a head that is made of likenesses of many long secrets', () => {
  const alike = Array.from({ length: 64 }, (_, i) => `${'a'.repeat(4_000)}x${i}`);
  it.each([
    ['as they stand', 'a'.repeat(30_000)],
    ['behind an escape', `%${'a'.repeat(30_000)}`],
    ['escaped', '%61'.repeat(10_000)],
  ])('%s shows nothing of itself but its framing', (_, text) => {
    const out = masked(`HTTP/1.1 200 Fine\r\nA: b\r\nX: ${text}\r\nContent-Length: 0\r\n\r\n`, ...alike);
    const expected = `HTTP/1.1 200 ****\r\n*:**\r\n*:*${stars(text)}\r\nContent-Length: 0\r\n\r\n`;
    expect(out.slice(0, 80)).toBe(expected.slice(0, 80));
    expect(out === expected).toBe(true);
  });
});

describe('a head of a host with more secrets than can be searched for', () => {
  const many = Array.from({ length: 64 }, (_, i) => `${i.toString(36).padStart(2, 'k')}${'a'.repeat(4_000)}`);
  many.push('x%41%42xxxx');
  const first = many[0] ?? '';

  it('stays as it is if it contains the beginning of none', () => {
    const text = inField(`/path%20with?c=%2Fd&etag=${'0123456789abcdef'.repeat(4)}`);
    expect(masked(text, ...many)).toBe(text);
  });

  it.each([
    ['as it is', first],
    ['escaped', percentOfEveryByte(first)],
    ['escaped in part', `${first.slice(0, 2)}%61${first.slice(3)}`],
    ['in base64', Buffer.from(first).toString('base64')],
    [
      'in hex, escaped in part, behind a percent sign',
      `%${Buffer.from(first).toString('hex').replace('3', '%33')}`,
    ],
    ['with an escape of its own escaped, and another as it is', 'x%2541%42xxxx'],
    ['with both its escapes escaped', 'x%2541%2542xxxx'],
  ])('shows only its framing if it contains one %s', (_, form) => {
    const out = masked(inField(form.slice(0, 16_000)), ...many);
    expect(out).toBe(
      `HTTP/1.1 200 **\r\n******:*${stars(form.slice(0, 16_000))}\r\nContent-Length: 0\r\n\r\n`,
    );
  });
});

it.each([
  ['after the secret’s own escape', 'p%41qqqq r', 'p%41qqqq%20r'],
  ['where the text before it eats into it', 'abcdef gh', '%4abcdef%20gh'],
])('a secret with other bytes escaped is masked %s', (_, text, form) => {
  expect(masked(inField(form), text)).not.toMatch(/qqqq|bcdef/);
});

describe('framing', () => {
  it.each([
    ['Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 12345678\r\n\r\n', '12345678'],
    ['Transfer-Encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', ': chunked'],
    ['a framing name', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'Content-Length'],
    ['Connection', 'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nX: y\r\n\r\n', 'keep-alive'],
    ['the status', 'HTTP/1.1 200 OK\r\nX: y\r\n\r\n', 'HTTP/1.1 200 OK'],
    ['the version', 'HTTP/1.1 200 OK\r\nX: y\r\n\r\n', 'HTTP/1.1'],
  ])('in %s stays, even where a secret reads like it', (_, text, value) => {
    expect(masked(text, value)).toBe(text);
  });
});

// Visible ASCII with spaces inside: what a header value may hold.
const value = fc
  .string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 8,
    maxLength: 40,
  })
  .filter((text) => text.trim() === text && !text.includes('*'));
const filler = fc.string({ unit: fc.constantFrom('x', 'y', '-', '=', '%', '4'), maxLength: 7 });
const encodings: readonly ((text: string) => string)[] = [
  (text) => text,
  encodeURIComponent,
  (text) => encodeURIComponent(text).replace(/%../g, (escape) => escape.toLowerCase()),
  encodeURI,
];

describe('for any secret', () => {
  it('no encoded form survives at any alignment, and the length is kept', () => {
    fc.assert(
      fc.property(value, filler, filler, fc.nat(), (text, before, after, pick) => {
        const form = (encodings[pick % encodings.length] ?? String)(text);
        const head = inField(`x${before}${form}${after}x`);
        const out = masked(head, text);
        expect(out).toHaveLength(head.length);
        expect(out.slice('HTTP/1.1 200 OK\r\nX-Echo: '.length)).not.toContain(form);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('no base64 text around it decodes to it', () => {
    fc.assert(
      fc.property(value, filler, filler, fc.boolean(), (text, before, after, isUrl) => {
        const encoded = Buffer.from(`${before}${text}${after}`).toString(isUrl ? 'base64url' : 'base64');
        const out = masked(inField(encoded), text);
        expect(out).toHaveLength(inField(encoded).length);
        const echoed = /X-Echo: (.*)\r/.exec(out)?.[1] ?? '';
        const decoded = Buffer.from(echoed.replaceAll('*', 'A'), 'base64').toString('latin1');
        expect(decoded).not.toContain(text.slice(1, -1));
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('the head parses to the same fields and the same framing', () => {
    const line = fc.constantFrom<string>(
      'Content-Length: 12345678',
      'X-Other: y',
      'Set-Cookie: a=b',
      'Connection: close',
    );
    fc.assert(
      fc.property(value, fc.uniqueArray(line, { maxLength: 4 }), fc.nat(4), (text, lines, at) => {
        const all = lines.toSpliced(at, 0, `X-Echo: ${text}`);
        const before = parse(['HTTP/1.1 200 OK', ...all, '', ''].join('\r\n'));
        const framing = responseFraming(before, 'GET');
        maskResponseHead(before, compileMask([text, '12345678', 'X-Other:', 'Connection: close']));
        const after = parse(before.bytes.toString('latin1'));
        expect(after.fields.count).toBe(before.fields.count);
        expect(responseFraming(after, 'GET')).toEqual(framing);
        for (let i = 0; i < after.fields.count; i += 1)
          expect(after.fields.lineEnd(i)).toBe(before.fields.lineEnd(i));
      }),
      { numRuns: runs(1_000) },
    );
  });

  it('a percent form with every byte escaped is masked too', () => {
    fc.assert(
      fc.property(value, (text) => {
        expect(masked(inField(percentOfEveryByte(text)), text)).toBe(
          inField(stars(percentOfEveryByte(text))),
        );
      }),
    );
  });
});
