// What is taken is what was added, in order, whatever the sizes; the page that was taken is not written to.
import { describe, expect, it } from 'vitest';
import { LinePages } from '../../src/base/log.ts';

const PAGE_BYTES = 224 * 1024;

function takeAll(pages: LinePages): string[] {
  const taken: string[] = [];
  for (let bytes = pages.take(); bytes; bytes = pages.take()) taken.push(bytes.toString());
  return taken;
}

describe('pages of lines', () => {
  it('returns nothing when nothing waits', () => {
    expect(new LinePages().take()).toBeUndefined();
  });

  const sizes: readonly (readonly [name: string, sizes: readonly number[]])[] = [
    ['short lines', Array.from({ length: 500 }, (_, i) => 1 + (i % 300))],
    ['lines that fill a page exactly', [PAGE_BYTES / 2, PAGE_BYTES / 2, 1]],
    ['a line that is larger than a page', [10, 200_000, 10, 20_000]],
    ['more lines than a page holds', Array.from({ length: 1000 }, () => 1000)],
  ];
  it.each(sizes)('returns %s as they were added', (_, lengths) => {
    const pages = new LinePages();
    const lines = lengths.map((length, i) => `${String(i % 10).repeat(length - 1)}\n`);
    lines.forEach((line) => pages.add(line));
    expect(pages.chars).toBe(lines.join('').length);
    expect(takeAll(pages).join('')).toBe(lines.join(''));
    expect(pages.chars).toBe(0);
  });

  it('counts characters and encodes them as UTF-8', () => {
    const pages = new LinePages();
    const lines = ['ü'.repeat(5000), '€'.repeat(20_000), '😀'.repeat(10_000), '\ud800'];
    lines.forEach((line) => pages.add(line));
    expect(pages.chars).toBe(45_001);
    expect(takeAll(pages).join('')).toBe(lines.join('').toWellFormed());
  });

  it('returns all at once, which nothing writes to', () => {
    const pages = new LinePages();
    pages.add('a'.repeat(20_000));
    const taken = pages.take();
    pages.add('b'.repeat(PAGE_BYTES - 10));
    pages.add('c'.repeat(9_000));
    expect(pages.takeAll().toString()).toBe('b'.repeat(PAGE_BYTES - 10) + 'c'.repeat(9_000));
    expect(pages.takeAll().length).toBe(0);
    expect(taken?.toString()).toBe('a'.repeat(20_000));
  });

  it('does not write to the page that was taken last', () => {
    const pages = new LinePages();
    pages.add('a'.repeat(20_000));
    const taken = pages.take();
    pages.add('b'.repeat(120_000));
    pages.add('c'.repeat(120_000));
    expect(taken?.toString()).toBe('a'.repeat(20_000));
    expect(takeAll(pages).join('')).toBe('b'.repeat(120_000) + 'c'.repeat(120_000));
  });
});
