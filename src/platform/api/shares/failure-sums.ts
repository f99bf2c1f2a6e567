// Failures that get no event of their own: one for each key or session, operation and status, with their number. Bounded for each
// organization.
import type { AuditEntry } from '../../audit/journal.ts';

const MAX_GROUPS = 64;
/** For what finds no group of its own. */
const OTHERS = 'others';

export class FailureSums {
  #organizations = new Map<string, Map<string, AuditEntry>>();

  add(entry: AuditEntry): void {
    const { organizationId, keyId, session, operation, status, workspaceId } = entry;
    const groups = this.#organizations.get(organizationId) ?? new Map<string, AuditEntry>();
    this.#organizations.set(organizationId, groups);
    const own = [keyId ?? session?.id, operation, status, workspaceId].join(' ');
    const isOwn = groups.has(own) || groups.size < MAX_GROUPS;
    const name = isOwn ? own : OTHERS;
    const requests = (groups.get(name)?.requests ?? 0) + (entry.requests ?? 1);
    // The ids of one request would stand for all.
    const sum = { ...entry, resources: [], requests };
    groups.set(name, isOwn ? sum : { ...withoutCaller(sum), workspaceId: undefined, status: undefined });
  }

  /** The entries of each organization, which are forgotten here. */
  take(): readonly (readonly AuditEntry[])[] {
    const taken = [...this.#organizations.values()].map((groups) => [...groups.values()]);
    this.#organizations = new Map();
    return taken;
  }
}

function withoutCaller(entry: AuditEntry): AuditEntry {
  const nobody = { keyId: undefined, session: undefined, userId: undefined, issuedBy: undefined };
  return { ...entry, ...nobody, request: undefined };
}
