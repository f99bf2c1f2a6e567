// The position where a document stops being JSON. Its text is never quoted.
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/base/input-error.ts';
import { readDocument } from '../../src/cli/document.ts';
import { createScratch } from '../support/scratch.ts';

const COMMA = 'a comma is missing before it, or the document ends before it';
const END = 'it ends too early: a quote, bracket or brace is not closed';
const ESCAPE = String.raw`after a backslash only " \ / b f n r t or u and four hexadecimal digits may stand`;
const OTHER = 'a value, a comma or the end of the document must be here';

describe('a document', () => {
  it('that is JSON is parsed', async () => {
    await using scratch = await createScratch();
    expect(await readDocument(await scratch.write('a.json', ' {"a": [1, null]}\n'))).toEqual({
      a: [1, null],
    });
  });

  it.each([
    [
      'a word that is no value',
      '{"a": 1,\n "key": private}',
      '2:9',
      'write text in double quotes; the only words are true, false and null',
    ],
    ['a comma too many', '{"a": 1,}', '1:9', 'remove the comma before the closing bracket'],
    ['a missing comma', '{"a": 1 "b": "private"}', '1:9', COMMA],
    ['a missing end', '{"a": "private"', '1:16', END],
    ['an open string', '["private', '1:10', END],
    [
      'a line break in a string',
      '["pri\nvate"]',
      '1:6',
      'a string must not have a line break or a tab: write \\n or \\t',
    ],
    ['a bad escape', '["private\\x"]', '1:11', ESCAPE],
    ['something behind the end', '{}\n\nprivate', '3:1', COMMA],
    ['a half word', '[tru]', '1:5', OTHER],
    ['a comment', '// private\n{}', '1:1', 'JSON has no comments: remove it'],
    ['nothing', '', '1:1', 'the document is empty'],
    ['single quotes', "{'private': 1}", '1:2', 'write names and strings in double quotes'],
    ['a number with a leading zero', '{"a": 01}', '1:8', COMMA],
  ])('with %s is rejected with the position and what to do', async (_, text, place, mistake) => {
    await using scratch = await createScratch();
    const file = await scratch.write('a.json', text);
    const error = await readDocument(file).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InputError);
    expect(String(error)).toBe(`InputError: ${file}:${place}: not valid JSON: ${mistake}`);
  });

  it.each([
    ['a name twice', '{"a": "private",\n "a": 1}', ':2:2: this name occurs twice in one object'],
    ['33 levels', '['.repeat(33) + ']'.repeat(33), ':1:33: nested deeper than 32 levels'],
    ['more than 4 MiB', `"${'x'.repeat(4 * 2 ** 20)}"`, ' is larger than 4 MiB'],
  ])('with %s is rejected, though it is JSON', async (_, text, message) => {
    await using scratch = await createScratch();
    const file = await scratch.write('a.json', text);
    await expect(readDocument(file)).rejects.toThrow(new InputError(`${file}${message}`));
  });

  it('of 4 MiB is read', async () => {
    await using scratch = await createScratch();
    const text = 'x'.repeat(4 * 2 ** 20 - 2);
    expect(await readDocument(await scratch.write('a.json', `"${text}"`))).toBe(text);
  });

  it('without an end is read up to the limit', async () => {
    await expect(readDocument('/dev/zero')).rejects.toThrow('/dev/zero is larger than 4 MiB');
  });

  it('that does not exist is reported with the code of the error', async () => {
    await expect(readDocument('/nonexistent.json')).rejects.toThrow(
      '/nonexistent.json cannot be read: ENOENT',
    );
  });
});
