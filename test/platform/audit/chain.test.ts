import { describe, expect, it } from 'vitest';
import { genesis, hashOf, type Link } from '../../../src/platform/audit/chain.ts';

const link: Link = {
  organizationId: '11111111-1111-4111-8111-111111111111',
  seq: 1n,
  id: '22222222-2222-4222-8222-222222222222',
  timeMs: '1795000000000',
  operation: 'create_listener',
  workspaceId: '33333333-3333-4333-8333-333333333333',
  record: '{"operation_succeeded":true}',
  previousHash: genesis,
  hash: genesis,
};
const hash = (change: Partial<Link> = {}): string | undefined =>
  hashOf({ ...link, ...change })?.toString('hex');

describe('the hash of an event', () => {
  it('never changes: databases store it', () => {
    expect(hash()).toBe('a6070c984d82b96196bf0aaefa7144583a3d96c0a052eea870c185ae0fd97357');
  });

  it.each<[string, Partial<Link>]>([
    ['organization', { organizationId: link.id }],
    ['number', { seq: 2n }],
    ['id', { id: link.organizationId }],
    ['time', { timeMs: '1795000000001' }],
    ['operation', { operation: 'login' }],
    ['workspace', { workspaceId: null }],
    ['record', { record: '{}' }],
    ['previous hash', { previousHash: Buffer.alloc(32, 1) }],
  ])('covers the %s', (_, change) => expect(hash(change)).not.toBe(hash()));

  it('does not cover the hash itself', () => {
    expect(hash({ hash: Buffer.alloc(32, 1) })).toBe(hash());
  });

  it('distinguishes events whose fields have the same bytes in a row', () => {
    expect(hash({ operation: 'ab', record: 'c' })).not.toBe(hash({ operation: 'a', record: 'bc' }));
    expect(hash({ workspaceId: null, operation: link.operation })).not.toBe(
      hash({ workspaceId: '00000000-0000-0000-0000-000000000000' }),
    );
  });

  it.each([{ timeMs: 'none' }, { timeMs: '1.5' }, { timeMs: '9'.repeat(19) }, { seq: 2n ** 63n }])(
    'does not exist for %o',
    (change) => expect(hash(change)).toBeUndefined(),
  );
});
