// Access to pages: that of the workspace which `workspace` of the query names. A browser sends no header field of ours with a link.
import { type Access, type Entry, inWorkspace, type WorkspaceGrant } from '../access.ts';
import type { Permission } from '../../identity/permission.ts';

export function onPage(permission: Permission): Access<WorkspaceGrant> {
  const access = inWorkspace(permission);
  return {
    ...access,
    enter: (entry) => access.enter(inNamedWorkspace(entry)),
    recall: (entry) => access.recall?.(inNamedWorkspace(entry)),
    confirm: (entry, granted) => access.confirm(inNamedWorkspace(entry), granted),
  };
}

const HEADER = 'x-tenant-id';

/** A header that names one, as a program sends it, comes first. */
function inNamedWorkspace(entry: Entry): Entry {
  const { head } = entry;
  const [, search = ''] = head.target.split('?', 2);
  const named = new URLSearchParams(search).get('workspace');
  if (named === null || named === '' || head.field(HEADER) !== undefined) return entry;
  const field = (name: string): string | undefined => (name === HEADER ? named : head.field(name));
  return { ...entry, head: { ...head, field } };
}
