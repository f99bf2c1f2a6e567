import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { pageFieldsOf } from '../../../src/base/html/page-fields.ts';

it('a policy allows the style and the script by their hashes, and requests where the script needs them', () => {
  const hash = (text: string): string => createHash('sha256').update(text).digest('base64');
  const policyOf = (sources: Parameters<typeof pageFieldsOf>[0]): string =>
    pageFieldsOf(sources)['Content-Security-Policy'] ?? '';
  const own = policyOf({ style: 'a{}', script: 'let b', connects: true });
  expect(own).toContain(
    `default-src 'none'; style-src 'sha256-${hash('a{}')}'; script-src 'sha256-${hash('let b')}'`,
  );
  expect(own).toContain("connect-src 'self'");
  expect(policyOf({ style: 'a{}' })).not.toMatch(/script-src|connect-src|unsafe/);
});
