import { describe, expect, it } from 'vitest';
import { parseJsonDocument } from '../../../src/base/json/json-document.ts';
import { placeOf, syntaxMistake } from '../../../src/base/json/json-mistake.ts';

function mistakeIn(text: string): string {
  const reading = parseJsonDocument(text);
  if (reading.ok) throw new Error('this is JSON');
  const place = placeOf(text, reading.error.position);
  return place === undefined
    ? 'no place'
    : `${place.line}:${place.column} ${syntaxMistake(text, place.position)}`;
}

describe('a mistake', () => {
  it.each([
    ['{"a": [1, 2,]}', '1:13 remove the comma before the closing bracket'],
    ['{"a": 1,, "b": 2}', '1:9 remove one of the commas'],
    ['{\n  // why\n  "a": 1}', '2:3 JSON has no comments: remove it'],
    ['# why\n{}', '1:1 JSON has no comments: remove it'],
    [`{"a": 1,\n${' '.repeat(80)}}`, '2:81 remove the comma before the closing bracket'],
    [`{"a": 1,${'\n'.repeat(80)}x}`, '81:1 write names in double quotes'],
    ["{'a': 1}", '1:2 write names and strings in double quotes'],
    ['{a: 1}', '1:2 write names in double quotes'],
    ['rules:\n  - match_hosts: [a]', '1:1 begin with { or [: this may be YAML or another format'],
    ['{"a": "b"\n "c": 1}', '2:2 a comma is missing before it, or the document ends before it'],
    ['{"a": 1', '1:8 it ends too early: a quote, bracket or brace is not closed'],
    ['\ufeff{}', '1:1 it begins with a byte order mark: save it without one'],
    ['  \n', '1:3 the document is empty'],
  ])('in %j is %s', (text, mistake) => {
    expect(mistakeIn(text)).toBe(mistake);
  });

  it('is never shown with the text around it', () => {
    for (const text of ['{"a": c4n4ry}', "{'c4n4ry': 1}", '{"c4n4ry": 1,}', 'c4n4ry: 1'])
      expect(mistakeIn(text)).not.toContain('c4n4ry');
  });

  it('in a long text is not searched for', () => {
    expect(placeOf('x'.repeat(100), undefined, 99)).toBeUndefined();
    expect(placeOf('x'.repeat(100), 7, 99)).toMatchObject({ column: 8 });
  });
});
