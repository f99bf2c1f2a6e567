// Where a runner finds its platform.
import { expect, it } from 'vitest';
import { platformUrlOf } from '../../../../src/platform/runner/program/platform-url.ts';

it.each([
  ['127.0.0.1', undefined, 'http://127.0.0.1:8080'],
  ['0.0.0.0', undefined, 'http://127.0.0.1:8080'],
  ['::', undefined, 'http://[::1]:8080'],
  ['10.0.0.5', undefined, 'http://10.0.0.5:8080'],
  ['127.0.0.1', 'https://platform.example.com', 'https://platform.example.com'],
])('listens on %s, with the setting %s', (host, platformUrl, url) => {
  expect(platformUrlOf({ listen: { host, port: 8080 }, runner: { platformUrl } })).toBe(url);
});
