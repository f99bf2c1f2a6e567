import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutText, formatBytes, visibleText } from '../../../src/base/html/visible-text.ts';

const show = (text: string, isBlock = false): string => String(visibleText(text, { max: 1_000, isBlock }));

describe('a text of somebody else', () => {
  it('is text, isolated from what is around it', () => {
    expect(show('<script>a & "b"</script>')).toBe(
      '<bdi>&#60;script&#62;a &#38; &#34;b&#34;&#60;/script&#62;</bdi>',
    );
    expect(show('שלום 😀 ä')).toBe('<bdi>שלום 😀 ä</bdi>');
  });

  it('shows characters that are not seen or change directions by their numbers', () => {
    const mark = (text: string): string => `<b class="mark">${text}</b><wbr>`;
    expect(show('a\u202eb')).toBe(`<bdi>a${mark('U+202E')}b</bdi>`);
    expect(show('\u200b\u200b\u200b\u2066')).toBe(`<bdi>${mark('U+200B ×3')}${mark('U+2066')}</bdi>`);
    expect(show('\0\u{e0041}\u{e0100}')).toBe(
      `<bdi>${mark('U+0000')}${mark('U+E0041')}${mark('U+E0100')}</bdi>`,
    );
    for (const one of [
      '\u061c',
      '\u200e',
      '\u202a',
      '\u2069',
      '\u2028',
      '\ufeff',
      '\u00ad',
      '\u3164',
      '\x1b',
      '\x85',
    ])
      expect(show(one)).toMatch(/^<bdi><b class="mark">U\+[0-9A-F]{4}<\/b><wbr><\/bdi>$/);
    expect(show('\ud800')).toBe('<bdi>\ufffd</bdi>');
  });

  it('keeps tabs and line breaks in a block, and shows them on a line', () => {
    expect(show('a\tb\nc\r', true)).toBe('<bdi>a\tb\nc<b class="mark">U+000D</b><wbr></bdi>');
    expect(show('a\n')).toBe('<bdi>a<b class="mark">U+000A</b><wbr></bdi>');
  });

  it('has four marks on a letter at most', () => {
    expect(show(`e${'\u0301'.repeat(300)}!`)).toBe(
      `<bdi>e${'\u0301'.repeat(4)}<b class="mark">296 combining</b><wbr>!</bdi>`,
    );
    expect(show('नमस्ते')).toBe('<bdi>नमस्ते</bdi>');
  });

  it('is cut without breaking a character, and says its size', () => {
    const cut = String(visibleText('😀'.repeat(10), { max: 3 }));
    expect(cut).toBe('<bdi>😀</bdi><span class="cut">… 40 B</span>');
    expect(String(visibleText('ab', { max: 5, wholeBytes: 20 * 1024 ** 2 }))).toBe(
      '<bdi>ab</bdi><span class="cut">… 20.0 MiB</span>',
    );
    expect(String(visibleText('ab', { max: 5, wholeBytes: 2 }))).toBe('<bdi>ab</bdi>');
    expect([cutText('ab', 2), cutText('abc', 2)]).toEqual(['ab', 'ab']);
  });

  it('of 20 MiB costs no more than what is shown of it, and a block of marks stays bounded', () => {
    const started = performance.now();
    const text = String(visibleText('\u202ea'.repeat(5 * 1024 ** 2), { max: 200 }));
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(text.length).toBeLessThan(10_000);
  });

  it('of unseen characters alone ends after some thousands of them', () => {
    const text = String(visibleText('\u202ea\u200bb'.repeat(16_384), { max: Infinity, isBlock: true }));
    expect(text.match(/<b class="mark">/g)).toHaveLength(2_000);
    expect(text).toMatch(/<\/bdi><span class="cut">… 128.0 KiB<\/span>$/);
  });

  it('never has a character outside of a mark that is not seen', () => {
    const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0x10_ff_ff })), (points) => {
        const text = String.fromCodePoint(...points);
        expect(unseen.test(show(text))).toBe(false);
      }),
    );
  });
});

it('sizes are those of people', () => {
  expect([0, 1023, 1024, 1.5 * 1024 ** 2, 5 * 1024 ** 4].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 MiB',
    '5120.0 GiB',
  ]);
});
