// `/v1/proxy-profiles`: named documents with rules of the proxy, which the sandboxes of a workspace share.
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { createCursorQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import type { Wiring } from '../module.ts';
import { mergeDocuments } from '../proxy-documents/merged-document.ts';
import { parseDocument, type ProxyDocument, secretNamesIn } from '../proxy-documents/parsed-document.ts';
import { checkDocument } from '../proxy-documents/resolved-document.ts';
import type { Reader } from '../store/database.ts';
import { openSecrets } from '../workspace-secrets/contract.ts';
import { readProfile } from './contract.ts';
import { newProfile, profile, profileChange, profileSummary } from './profile-schema.ts';
import { changeProfile, createProfile, deleteProfile, findProfile, listProfiles } from './profiles.ts';

const all = { path: '/v1/proxy-profiles', tag: 'Proxy profiles' } as const;
const one = {
  path: '/v1/proxy-profiles/{profile_id}',
  tag: 'Proxy profiles',
  params: z.strictObject({ profile_id: z.guid() }),
} as const;

type Rules = Pick<Wiring, 'vault' | 'config'>;

export function createProfileRoutes(wiring: Rules): readonly Route[] {
  return [listRoute, readRoute, createRoute(wiring), changeRoute(wiring), deleteRoute(wiring)];
}

const listRoute = defineRoute({
  ...all,
  method: 'GET',
  summary: 'List the proxy profiles of the workspace, oldest first, without their documents',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  query: createCursorQuery(20, 100),
  responses: {
    200: z.strictObject({ proxy_profiles: z.array(profileSummary), next_cursor: z.string().nullable() }),
  },
  async handle({ db, workspaceId, query }) {
    const { rows, cursor } = await listProfiles(db, workspaceId, query);
    return { body: { proxy_profiles: rows, next_cursor: cursor } };
  },
});

const readRoute = defineRoute({
  ...one,
  method: 'GET',
  summary: 'Read a proxy profile; opaque values are not shown',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: profile },
  failures: [404],
  async handle({ db, workspaceId, params }) {
    return { body: toProfile(await findProfile(db, workspaceId, params.profile_id)) };
  },
});

function createRoute({ vault, config }: Rules): Route {
  return defineRoute({
    ...all,
    method: 'POST',
    summary: 'Create a proxy profile',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'create_sandbox_proxy_profile' },
    body: newProfile,
    responses: { 201: profile },
    failures: [409],
    async prepare({ db, workspaceId, body }) {
      const document = parseDocument(body.proxy_config, config.sandboxes);
      await checkSecrets({ vault, db }, workspaceId, document);
      await vault.prepare();
      return document;
    },
    async handle({ db, workspaceId, body: { name, is_default } }, document) {
      const write = { vault, trx: db, workspaceId };
      const created = await createProfile(write, { name, is_default, document });
      return { body: toProfile(created), resources: [created.id] };
    },
  });
}

function changeRoute({ vault, config }: Rules): Route {
  return defineRoute({
    ...one,
    method: 'PATCH',
    summary:
      'Change a proxy profile; its document is replaced as a whole, and opaque values that it leaves out are kept',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'update_sandbox_proxy_profile' },
    body: profileChange,
    responses: { 200: profile },
    failures: [404, 409],
    async prepare({ db, workspaceId, params, body }) {
      if (body.proxy_config === undefined) return undefined;
      const stored = await readProfile({ vault, db }, workspaceId, params.profile_id);
      // The transaction says that it does not exist.
      if (stored === undefined) return undefined;
      const { opened } = stored;
      // One that is not valid any more is replaced with all its values.
      const kept = opened.ok ? opened.document : undefined;
      const document = parseDocument(body.proxy_config, config.sandboxes, kept);
      await checkSecrets({ vault, db }, workspaceId, document);
      await vault.prepare();
      return { document, basedOn: stored.version };
    },
    async handle({ db, workspaceId, params, body: { name, is_default } }, replacement) {
      const write = { vault, trx: db, workspaceId };
      const changed = await changeProfile(write, params.profile_id, { name, is_default, replacement });
      return { body: toProfile(changed), resources: [changed.id] };
    },
  });
}

function deleteRoute({ vault }: Rules): Route {
  return defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a proxy profile that nothing uses',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'delete_sandbox_proxy_profile' },
    responses: { 204: null },
    failures: [404, 409],
    async handle({ db, workspaceId, params }) {
      await deleteProfile({ vault, trx: db, workspaceId }, params.profile_id);
    },
  });
}

/** The secrets that it names must exist, so that what uses the profile does not fail later. */
async function checkSecrets(
  source: { readonly vault: Rules['vault']; readonly db: Reader },
  workspaceId: string,
  document: ProxyDocument,
): Promise<void> {
  const secrets = await openSecrets(source, workspaceId, secretNamesIn(document));
  await checkDocument(mergeDocuments({ own: document, profile: undefined }), secrets);
}

function toProfile<Row extends { readonly shown: Readonly<Record<string, unknown>> }>({
  shown,
  ...rest
}: Row) {
  return { ...rest, proxy_config: shown };
}
