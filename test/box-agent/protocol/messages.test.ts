// What an agent may say about its calls, and what is no message.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../../src/box-agent/protocol/frame.ts';
import {
  decodeRange,
  encodeJson,
  encodeRange,
  parseCall,
  parseEnded,
  parseFailure,
  parseFileStat,
  parseGlobMatch,
  parseGrepMatch,
  parseNothing,
  parseSearched,
  parseStarted,
} from '../../../src/box-agent/protocol/messages.ts';

const parsers = {
  parseStarted,
  parseEnded,
  parseFileStat,
  parseSearched,
  parseFailure,
  parseGlobMatch,
  parseGrepMatch,
  parseNothing,
};
type Name = keyof typeof parsers;

describe('messages', () => {
  it.each<[Name, object]>([
    ['parseStarted', { pid: 17 }],
    ['parseEnded', { exitCode: 255, signal: 0 }],
    ['parseFileStat', { size: 2 ** 40, mtimeMs: -1, version: '1-ff-0' }],
    ['parseSearched', { truncated: true }],
    ['parseFailure', { code: 'ENOENT' }],
    ['parseGlobMatch', { path: '/a', isDirectory: false, size: 0, mtimeMs: 0 }],
    ['parseGrepMatch', { path: '/a', line: 1, text: 'x' }],
    ['parseNothing', {}],
  ])('%s takes what it knows and nothing else', (name, value) => {
    expect(parsers[name](encodeJson({ ...value, box: 'another', message: 'text' }))).toEqual(value);
  });

  it.each<[Name, string, string]>([
    ['parseStarted', 'a negative pid', '{"pid":-1}'],
    ['parseStarted', 'a pid beyond those of the kernel', '{"pid":1e9}'],
    ['parseStarted', 'no pid', '{}'],
    ['parseStarted', 'an inherited member', '{"__proto__":{"pid":1}}'],
    ['parseEnded', 'an exit code of no process', '{"exitCode":256,"signal":0}'],
    ['parseEnded', 'a fraction', '{"exitCode":0.5,"signal":0}'],
    ['parseFileStat', 'a size that no number holds', '{"size":1e300,"mtimeMs":0,"version":"1"}'],
    ['parseFileStat', 'a time that no date holds', '{"size":1,"mtimeMs":1e300,"version":"1"}'],
    ['parseFileStat', 'a version with a quote', '{"size":1,"mtimeMs":1,"version":"1\\"\\r\\nX: y"}'],
    ['parseSearched', 'a text for a flag', '{"truncated":"yes"}'],
    ['parseFailure', 'a text for a code', '{"code":"No such file /etc/shadow"}'],
    [
      'parseGlobMatch',
      'a path without end',
      `{"path":"${'a'.repeat(4097)}","isDirectory":false,"size":0,"mtimeMs":0}`,
    ],
    ['parseGrepMatch', 'a long line', `{"path":"/a","line":1,"text":"${'a'.repeat(1001)}"}`],
    ['parseNothing', 'a list', '[]'],
    ['parseNothing', 'null', 'null'],
    ['parseNothing', 'no JSON', '{'],
    ['parseNothing', 'deep nesting', '['.repeat(4000)],
  ])('%s rejects %s', (name, _, text) => {
    expect(() => parsers[name](Buffer.from(text))).toThrow(ProtocolError);
  });

  it('reject what is not UTF-8', () => {
    expect(() => parseNothing(Buffer.from('{"a":"\xff"}', 'latin1'))).toThrow(ProtocolError);
  });

  it('make text of lone surrogates that can be sent on', () => {
    expect(parseGrepMatch(Buffer.from('{"path":"/\\ud800","line":1,"text":"\\udfff"}'))).toEqual({
      path: '/\ufffd',
      line: 1,
      text: '\ufffd',
    });
  });

  it('of any bytes are parsed or rejected', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string()),
        fc.constantFrom(...Object.values(parsers)),
        (text, parse) => {
          try {
            parse(Buffer.from(text));
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        },
      ),
    );
  });
});

describe('a range', () => {
  it('is read as it was written', () => {
    const number = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(number, number, (offset, length) => {
        expect(decodeRange(encodeRange({ offset, length }))).toEqual({ offset, length });
      }),
    );
  });

  it('of another length is rejected', () =>
    expect(() => decodeRange(Buffer.alloc(15))).toThrow(ProtocolError));
});

describe('a call', () => {
  it('needs a method', () => expect(() => parseCall(encodeJson({ path: '/' }))).toThrow(ProtocolError));
});
