import { describe, expect, it } from 'vitest';
import { parseWith } from '../../../src/base/schema.ts';
import {
  displayName,
  email,
  expiry,
  organizationRole,
  page,
  toPage,
} from '../../../src/platform/management/fields.ts';

function messagesOf(parsed: ReturnType<typeof parseWith>): readonly string[] {
  return parsed.ok ? [] : parsed.issues.map(({ msg }) => msg);
}

describe('a display name', () => {
  it('is trimmed', () =>
    expect(parseWith(displayName, ' Acme & Søns ')).toEqual({ ok: true, value: 'Acme & Søns' }));

  it.each(['', '  '])('that is empty has exactly one issue: %j', (text) => {
    expect(messagesOf(parseWith(displayName, text))).toEqual(['Input must have at least 1 character']);
  });

  it.each(['a\u0000b', 'a\u202eb', 'a\nb', 'a\u2028b'])(
    'rejects control characters and direction marks: %j',
    (text) => {
      expect(messagesOf(parseWith(displayName, text))).toEqual(['Input must have no control characters']);
    },
  );
});

describe('an email address', () => {
  it.each([`${'a'.repeat(64)}@b.test`, `o'neil+x@${'b'.repeat(63)}.test`, 'a.b@c-d.e.test'])(
    'may be as long as RFC 5321 says: %s',
    (text) => expect(parseWith(email, text)).toEqual({ ok: true, value: text }),
  );

  it.each([
    `${'a'.repeat(65)}@b.test`,
    `a@${'b'.repeat(64)}.test`,
    `a@b-.test`,
    'a..b@c.test',
    '.a@b.test',
    'a@b',
    'a@b@c.test',
  ])('that no mail server can have is rejected: %s', (text) =>
    expect(messagesOf(parseWith(email, text))).toEqual(['Input must be an email address']),
  );
});

it('an email address is stored in lower case', () => {
  expect(parseWith(email, 'Ada@Example.TEST')).toEqual({ ok: true, value: 'ada@example.test' });
});

it('a role is one of the table of permissions', () => {
  expect(organizationRole.options.toSorted()).toEqual([
    'ORGANIZATION_ADMIN',
    'ORGANIZATION_OPERATOR',
    'ORGANIZATION_USER',
    'ORGANIZATION_VIEWER',
  ]);
});

describe('an expiry', () => {
  const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

  it.each([1, 5 * 365])('can be %i days ahead', (days) =>
    expect(parseWith(expiry, inDays(days)).ok).toBe(true),
  );

  it.each([-1, 5 * 366 + 1])('cannot be %i days ahead', (days) => {
    expect(messagesOf(parseWith(expiry, inDays(days)))).toHaveLength(1);
  });
});

it('a list has all entries without a limit, as its public contract has no pages', () => {
  expect(toPage(page.parse({}))).toEqual({ limit: 10_000, offset: 0 });
  expect(toPage(page.parse({ limit: 100, offset: 7 }))).toEqual({ limit: 100, offset: 7 });
});
