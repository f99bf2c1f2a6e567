// Environment variables over a settings document, and issues that name the variable.
import { describe, expect, it } from 'vitest';
import {
  asBoolean,
  asList,
  asNumbers,
  asText,
  numericVariables,
  overlayVariables,
} from '../../src/base/variable-overlay.ts';

const variables = [
  { name: 'SP_LISTEN', path: ['listen'], read: asText },
  { name: 'SP_HOSTS', path: ['egress', 'hosts'], read: asList },
  ...numericVariables('SP_', 'limits', { bodyBytes: 1 }),
];

describe('an overlay', () => {
  it('sets the keys of the variables that are not empty, and changes no other and not its base', () => {
    const base = { listen: 'a', egress: { deny: ['x'] }, limits: 7 };
    const env = { SP_LISTEN: '', SP_HOSTS: 'b, c', SP_LIMITS_BODY_BYTES: '12', OTHER: 'z' };
    expect(overlayVariables(base, variables, env).document).toEqual({
      listen: 'a',
      egress: { deny: ['x'], hosts: ['b', 'c'] },
      limits: { body_bytes: 12 },
    });
    expect(base).toEqual({ listen: 'a', egress: { deny: ['x'] }, limits: 7 });
  });

  it('names the variable in an issue with a value that a variable set, and only there', () => {
    const { naming } = overlayVariables({}, variables, { SP_HOSTS: 'b' });
    const issue = { msg: 'm', type: 'value_error' } as const;
    expect(naming({ ...issue, loc: ['egress', 'hosts', 0] }).loc).toEqual(['SP_HOSTS', 0]);
    expect(naming({ ...issue, loc: ['egress', 'deny', 0] }).loc).toEqual(['egress', 'deny', 0]);
    expect(naming({ ...issue, loc: ['listen'] }).loc).toEqual(['listen']);
  });
});

it('values are read as text, booleans, lists and numbers', () => {
  expect([asText('1'), asBoolean('1'), asBoolean('false'), asBoolean('yes')]).toEqual([
    '1',
    true,
    false,
    'yes',
  ]);
  expect([asList('a, b'), asNumbers('1, x')]).toEqual([
    ['a', 'b'],
    [1, Number.NaN],
  ]);
});
