// docs/troubleshooting.md quotes what the proxy prints: each message is in the sources, each code in a catalogue or a record.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/spawned-process.ts';
import { readSources } from './source-tree.ts';

const page = readFileSync(join(projectRoot, 'docs/troubleshooting.md'), 'utf8');

/** Without what splits a message over lines, and without what a template inserts. */
const sources = [
  ...readSources('src/{admin,base,callback,cli,policy,proxy,sidecar,tls}/**/*.ts'),
  ...readSources('bin/*.js'),
]
  .map(({ text }) => text.replaceAll(/['`] \+\s*['`]/g, '').replaceAll(/\\(['`])/g, '$1'))
  .join('\n');

/** The second cell of each row: what the proxy shows. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| symptom'))
  .map((line) => line.split(' | '))
  .map(([symptom = '', shown = '']) => [symptom.slice(2), shown] as const);

/** The quoted texts of a cell; a backtick inside is escaped. */
const quoted = (cell: string): readonly string[] =>
  [...cell.matchAll(/`((?:[^`\\]|\\`)+)`/g)].map(([, text = '']) => text.replaceAll('\\`', '`'));

/** A message may be put together: from here on the text is not made of pieces of the sources. Undefined: it is. */
function unknownRest(text: string): string | undefined {
  let rest = text;
  while (rest !== '') {
    let length = rest.length;
    while (length > 0 && !sources.includes(rest.slice(0, length))) length -= 1;
    if (length < Math.min(MIN_PIECE, rest.length)) return rest;
    rest = rest.slice(length);
  }
  return undefined;
}

const MIN_PIECE = 9;

/** The parts of a message between names and numbers of the reader, and between what is joined to one sentence. */
function fixedParts(message: string): readonly string[] {
  return message
    .split(/\.\.\.|[():,]|\. /)
    .map((part) => part.trim())
    .filter((part) => /[a-z]{2}/.test(part));
}

describe('a message', () => {
  it('with another word than the sources have is found', () => {
    expect(unknownRest('the client does not trust the CA of this proxy')).toBeUndefined();
    expect(unknownRest('the client does not trust the CA of that proxy')).toBe('at proxy');
    expect(unknownRest('this was never printed')).toBe('this was never printed');
  });
});

describe('docs/troubleshooting.md', () => {
  it('has at least 20 rows', () => expect(rows.length).toBeGreaterThan(40));

  it.each(rows)('%s', (_, shown) => {
    expect(quoted(shown)).not.toEqual([]);
    const missing = quoted(shown)
      .filter((text) => / /.test(text) || /^[a-z]+(_[a-z0-9]+)+$/.test(text))
      .flatMap(fixedParts)
      .map(unknownRest)
      .filter((rest) => rest !== undefined);
    expect(missing).toEqual([]);
  });
});
