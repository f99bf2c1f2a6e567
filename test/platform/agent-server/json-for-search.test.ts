// JSON text that jsonb takes.
import { describe, expect, it } from 'vitest';
import { toSearchable } from '../../../src/platform/agent-server/json-for-search.ts';

describe('toSearchable', () => {
  it.each([
    ['{"a":"b\\n"}', '{"a":"b\\n"}'],
    ['"\\u0000"', '"\\ufffd"'],
    ['"\\\\u0000"', '"\\\\u0000"'],
    ['"\\\\\\u0000"', '"\\\\\\ufffd"'],
    ['"\\u00001"', '"\\ufffd1"'],
    ['"\\ud83d\\ude00"', '"\\ud83d\\ude00"'],
    ['"\\ud83d"', '"\\ufffd"'],
    ['"\\ude00\\ud83d"', '"\\ufffd\\ufffd"'],
    ['"\\uD83D\\u0041"', '"\\ufffd\\u0041"'],
    ['"\\u00e9\\u0000"', '"\\u00e9\\ufffd"'],
  ])('%s', (text, expected) => {
    expect(toSearchable(text)).toBe(expected);
    expect(() => JSON.parse(toSearchable(text))).not.toThrow();
  });
});
