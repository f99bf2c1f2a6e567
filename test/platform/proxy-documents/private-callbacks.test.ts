// Callbacks to loopback and private addresses, where the operator does not allow them.
import { expect, it } from 'vitest';
import { parseDocument } from '../../../src/platform/proxy-documents/parsed-document.ts';
import { callbackTo, issuesOf, open, parse } from './documents.ts';

const closed = { allowsPrivateCallbacks: false };

it.each([
  'http://127.0.0.1:9/',
  'http://localhost/',
  'http://box.localhost:8080/x',
  'http://10.1.2.3/',
  'https://172.16.0.1/',
  'http://192.168.1.1/',
  'http://169.254.169.254/latest',
  'http://100.64.0.1/',
  'http://0.0.0.0/',
  'http://[::1]:8080/',
  'http://[fd00::1]/',
  'http://[fe80::1]/',
  'http://[::ffff:7f00:1]/',
  'http://[64:ff9b::7f00:1]/',
])('%s is rejected where private addresses are not allowed', async (url) => {
  const input = { callbacks: [callbackTo('https://8.8.8.8/'), callbackTo(url, 'two.example.com')] };
  const issues = await issuesOf(() => parseDocument(input, closed));
  expect(issues.map(({ loc, type }) => [loc, type])).toEqual([
    [['body', 'proxy_config', 'callbacks', 1, 'url'], 'value_error'],
  ]);
  expect(await issuesOf(() => parseDocument(input, open))).toEqual([]);
});

it.each([
  'https://keys.example.com/x',
  'http://8.8.8.8/',
  'https://[2606:4700::1111]/',
  'https://localhost.example.com/',
])('%s is accepted', (url) =>
  expect(parseDocument({ callbacks: [callbackTo(url)] }, closed)).toEqual(
    parse({ callbacks: [callbackTo(url)] }),
  ),
);

it('a disabled callback is checked too', async () => {
  const input = { callbacks: [{ ...callbackTo('http://127.0.0.1/'), enabled: false }] };
  expect(await issuesOf(() => parseDocument(input, closed))).toHaveLength(1);
});
