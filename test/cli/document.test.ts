// Where a document stops being JSON. The text itself is never told.
import { describe, expect, it } from 'vitest';
import { InputError, readDocument } from '../../src/cli/document.ts';
import { createScratch } from '../support/scratch.ts';

describe('a document', () => {
  it('that is JSON is its value', async () => {
    await using scratch = await createScratch();
    expect(await readDocument(await scratch.write('a.json', ' {"a": [1, null]}\n'))).toEqual({
      a: [1, null],
    });
  });

  it.each([
    ['a word that is no value', '{"a": 1,\n "key": private}', '2:9'],
    ['a comma too many', '{"a": 1,}', '1:9'],
    ['a missing comma', '{"a": 1 "b": "private"}', '1:9'],
    ['a missing end', '{"a": "private"', '1:16'],
    ['an open string', '["private', '1:10'],
    ['a line break in a string', '["pri\nvate"]', '1:6'],
    ['a bad escape', '["private\\x"]', '1:11'],
    ['something behind the end', '{}\n\nprivate', '3:1'],
    ['a half word', '[tru]', '1:5'],
    ['a comment', '// private\n{}', '1:1'],
    ['nothing', '', '1:1'],
    ['single quotes', "{'private': 1}", '1:2'],
    ['a number with a leading zero', '{"a": 01}', '1:8'],
  ])('with %s is refused with its place', async (_, text, place) => {
    await using scratch = await createScratch();
    const file = await scratch.write('a.json', text);
    const error = await readDocument(file).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InputError);
    expect(String(error)).toBe(`InputError: ${file}:${place}: not valid JSON`);
  });

  it('that is not there is refused by its code', async () => {
    await expect(readDocument('/nonexistent.json')).rejects.toThrow(
      '/nonexistent.json cannot be read: ENOENT',
    );
  });
});
