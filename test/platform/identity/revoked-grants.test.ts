// Whether many grants are still held, asked for at once: the result is that of the check of a single request, whatever the
// key, the roles and the workspace, and whatever has changed since.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { inOrganization, inWorkspace } from '../../../src/platform/api/access.ts';
import type { Caller } from '../../../src/platform/identity/authentication.ts';
import type { Permission } from '../../../src/platform/identity/permission.ts';
import { findRevokedGrants, type HeldGrant } from '../../../src/platform/identity/revoked-grants.ts';
import { createSession } from '../../../src/platform/identity/sessions.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let nowMs = Date.now();
beforeAll(async () => {
  api = await createPlatformApi({ now: () => nowMs });
});
afterAll(() => api[Symbol.asyncDispose]());

const PERMISSIONS = [
  ...(['organization:grant_admin', 'organization:manage', 'organization:read'] as const),
  ...(['workspaces:read', 'WORKSPACES_MANAGE', 'deployments:create', 'sandboxes:read'] as const),
] satisfies readonly Permission[];

async function callerOf(key: string): Promise<Caller> {
  const { db } = api.database.store;
  return api.authenticator.authenticate(db, { apiKey: key, bearer: undefined, peer: '192.0.2.1' });
}

/** With a session of the same key. */
async function signIn({ keyId }: Caller): Promise<{ readonly text: string; readonly caller: Caller }> {
  const { db } = api.database.store;
  const { text } = await api.database.store.write((trx) => createSession(trx, keyId, nowMs));
  return { text, caller: await api.authenticator.authenticateSession(db, { text, peer: '192.0.2.1' }) };
}

/** As the check of one request decides. */
async function isRejected({ caller, workspaceId, permission }: Required<HeldGrant>): Promise<boolean> {
  const { authenticator, database } = api;
  const granted = { caller, permissions: caller.permissions, organizationId: caller.organization.id };
  const known = { authenticator, db: database.store.db } as never;
  try {
    if (workspaceId === '') await inOrganization(permission!).confirm(known, granted);
    else await inWorkspace(permission!).confirm(known, { ...granted, workspaceId });
    return false;
  } catch (error) {
    if (error instanceof DomainError) return true;
    throw error;
  }
}

it('the grants that have ended are those that a request would be rejected for', async () => {
  const { db } = api.database.owner;
  const organization = await api.addOrganization();
  const [own, other] = [await api.addWorkspace(organization), await api.addWorkspace(organization)];
  const foreign = await api.addWorkspace(await api.addOrganization());
  const keys = [
    await api.addServiceKey(organization, 'ORGANIZATION_ADMIN'),
    await api.addServiceKey(organization, 'ORGANIZATION_VIEWER'),
    await api.addServiceKey(organization, 'WORKSPACE_ADMIN', own),
    await api.addServiceKey(organization, 'WORKSPACE_VIEWER', other),
    await api.addMemberKey(organization, 'ORGANIZATION_OPERATOR'),
    await api.addMemberKey(organization, 'ORGANIZATION_USER'),
    await api.addMemberKey(organization, 'ORGANIZATION_USER', { id: own, role: 'WORKSPACE_ADMIN' }),
    await api.addMemberKey(organization, 'ORGANIZATION_VIEWER', { id: other, role: 'WORKSPACE_VIEWER' }),
  ];
  const callers = await Promise.all(keys.map(callerOf));
  const sessions = [await signIn(callers[1]!), await signIn(callers[4]!), await signIn(callers[7]!)];
  callers.push(...sessions.map(({ caller }) => caller));
  const grants = callers.flatMap((caller) =>
    ['', own, other, foreign].flatMap((workspaceId) =>
      PERMISSIONS.map((permission) => ({ caller, workspaceId, permission })),
    ),
  );
  let previous = 0;
  const compare = async (): Promise<void> => {
    const asked = grants.map(({ workspaceId, ...grant }, at) => ({
      ...{ ...grant, at },
      ...(workspaceId === '' ? {} : { workspaceId }),
    }));
    const revoked = await findRevokedGrants(api.database.store.db, asked, nowMs);
    const expected = await Promise.all(grants.map(isRejected));
    expect(asked.map((grant) => revoked.has(grant))).toEqual(expected);
    // Each change has taken something away.
    expect(revoked.size).toBeGreaterThan(previous);
    previous = revoked.size;
  };
  await compare();
  const userOf = (at: number): string => callers[at]!.userId!;
  for (const change of [
    () => db.deleteFrom('api_keys').where('id', '=', callers[0]!.keyId),
    () =>
      db.updateTable('workspace_members').set({ role: 'WORKSPACE_VIEWER' }).where('user_id', '=', userOf(6)),
    () => db.deleteFrom('workspace_members').where('user_id', '=', userOf(6)),
    () =>
      db
        .updateTable('organization_members')
        .set({ role: 'ORGANIZATION_VIEWER' })
        .where('user_id', '=', userOf(4)),
    () => db.deleteFrom('organization_members').where('user_id', '=', userOf(5)),
    () => db.deleteFrom('sessions').where('id', '=', sessions[0]!.caller.sessionId!),
    () =>
      db
        .updateTable('sessions')
        .set({ expires_at: new Date(nowMs + 1_000) } as never)
        .where('id', '=', sessions[1]!.caller.sessionId!),
    () => db.deleteFrom('workspaces').where('id', '=', other),
    () =>
      db
        .updateTable('api_keys')
        .set({ expires_at: new Date(nowMs + 1_000) })
        .where('id', '=', callers[2]!.keyId),
  ]) {
    await change().execute();
    // The last change is an expiry.
    nowMs += 2_000;
    await compare();
  }
});
