// The parser's limits of heads: one object for all heads, until the limits change.
import { expect, it } from 'vitest';
import { defaultLimits, requestHeadLimits, responseHeadLimits } from '../../src/proxy/limits.ts';

it('are the limits of requests and of responses', () => {
  expect(requestHeadLimits(defaultLimits)).toEqual({
    maxHeadBytes: 16_384,
    maxFields: 100,
    maxTargetBytes: 8_192,
  });
  expect(responseHeadLimits(defaultLimits)).toEqual({
    maxHeadBytes: 32_768,
    maxFields: 100,
    maxTargetBytes: 8_192,
  });
});

it('are made once', () => {
  expect(requestHeadLimits(defaultLimits)).toBe(requestHeadLimits(defaultLimits));
  expect(responseHeadLimits(defaultLimits)).toBe(responseHeadLimits(defaultLimits));
});

it.each([
  ['maxRequestHeadBytes', { maxHeadBytes: 7, maxFields: 100, maxTargetBytes: 8_192 }],
  ['maxFields', { maxHeadBytes: 16_384, maxFields: 7, maxTargetBytes: 8_192 }],
  ['maxTargetBytes', { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 7 }],
] as const)('follow a change of %s', (name, expected) => {
  const limits = { ...defaultLimits };
  requestHeadLimits(limits);
  responseHeadLimits(limits);
  limits[name] = 7;
  expect(requestHeadLimits(limits)).toEqual(expected);
  if (name !== 'maxRequestHeadBytes')
    expect(responseHeadLimits(limits)).toEqual({ ...expected, maxHeadBytes: 32_768 });
});
