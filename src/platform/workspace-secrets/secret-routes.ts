// `/api/v1/workspaces/current/secrets`: callers set and delete secrets and read their names. No response has a value.
import { toLocKey, z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import type { Vault } from '../vault/vault.ts';
import { listSecretNames } from './contract.ts';
import { changeSecrets, secretChanges } from './secret-changes.ts';

const shared = { path: '/api/v1/workspaces/current/secrets', tag: 'Workspace secrets' } as const;

const listSecrets = defineRoute({
  ...shared,
  method: 'GET',
  summary: 'List the keys of the secrets of the workspace; values are never returned',
  access: inWorkspace('workspaces:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: z.array(z.strictObject({ key: z.string() })) },
  async handle({ db, workspaceId }) {
    const names = await listSecretNames(db, workspaceId);
    return { body: names.map((key) => ({ key })) };
  },
});

export function createSecretRoutes(vault: Vault): readonly Route[] {
  const writeSecrets = defineRoute({
    ...shared,
    method: 'POST',
    summary: 'Set secrets of the workspace, or delete those whose value is null; all of them or none',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'update_workspace_secrets' },
    body: secretChanges,
    responses: { 200: z.strictObject({}) },
    prepare: () => vault.prepare(),
    async handle({ db, workspaceId, body }) {
      const changed = await changeSecrets({ vault, trx: db }, workspaceId, body);
      return {
        body: {},
        resources: changed.map(({ id }) => id),
        // Shortened, because what was sent as a key may be a value by mistake, and an event is kept for 400 days.
        resourceNames: changed.map(({ key }) => toLocKey(key)),
      };
    },
  });
  return [listSecrets, writeSecrets];
}
