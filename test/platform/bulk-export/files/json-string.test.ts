// Long texts are decoded without a string of their length, whatever is where they are cut.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { decodeJsonString } from '../../../../src/platform/bulk-export/files/json-string.ts';

it.each([
  String.raw`""`,
  String.raw`"plain"`,
  String.raw`"a\\\"\n\u0041\u00e9\u20ac"`,
  String.raw`"é€😀 \ud83d\ude00 \uD83D\uDE00"`,
  String.raw`"\ud83d\ud83d\ude00 \ude00\ud83d"`,
  String.raw`"\ud83d"`,
])('%s has the same text, wherever it is cut', (json) => {
  const expected = (JSON.parse(json) as string).toWellFormed();
  for (let pieceBytes = 1; pieceBytes <= json.length + 1; pieceBytes += 1)
    expect(decodeJsonString(Buffer.from(json), pieceBytes).toString()).toBe(expected);
});

it('an error of 60 MB is a value of a column in a heap of 64 MB', async () => {
  const source = new URL('../../../../src/platform/bulk-export/files/column-values.ts', import.meta.url);
  const program = `
    const { valueOf } = await import(${JSON.stringify(source.href)});
    const json = Buffer.alloc(60e6, 'x');
    json.write('"');
    json.write('\\\\u0100"', json.length - 7);
    const value = valueOf({ name: 'error', type: 'text' }, {})({}, () => json);
    console.log(value.length);`;
  const switches = ['--max-old-space-size=64', '--max-semi-space-size=8'];
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...switches,
    ...['--input-type=module', '-e', program],
  ]);
  expect(Number(stdout)).toBe(60e6 - 8 + 2);
});
