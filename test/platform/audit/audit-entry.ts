// An entry of the audit log for tests.
import type { AuditEntry } from '../../../src/platform/audit/journal.ts';

export function entryOf(organizationId: string, change: Partial<AuditEntry> = {}): AuditEntry {
  return {
    organizationId,
    workspaceId: undefined,
    operation: 'create_listener',
    isSuccess: true,
    userId: undefined,
    keyId: '0b0b0b0b-0000-4000-8000-000000000001',
    request: {
      method: 'POST',
      path: '/v2/listeners',
      clientHost: '127.0.0.1',
      clientPort: 40_000,
      forwardedFor: undefined,
    },
    status: 201,
    resources: [],
    ...change,
  };
}
