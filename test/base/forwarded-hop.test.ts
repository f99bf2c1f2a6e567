import { expect, it } from 'vitest';
import { parseHop } from '../../src/base/forwarded-hop.ts';

it.each([
  ['203.0.113.9', '203.0.113.9'],
  [' 203.0.113.9:8080 ', '203.0.113.9'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
])('finds the address in %s', (text, address) => {
  expect(parseHop(text)).toBe(address);
});

it.each([
  '',
  'unknown',
  '203.0.113',
  '203.0.113.9:',
  '203.0.113.9:http',
  '[2001:db8::1',
  '2001:db8::1]:443',
  '_hidden',
])('finds no address in %j', (text) => {
  expect(parseHop(text)).toBeUndefined();
});
