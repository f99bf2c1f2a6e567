// `…/boxes/{name}/…` besides reading: start, stop, what is pushed to a running box again, and the deletion of several boxes.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { boxParams, type BoxParts, oneBox, requireRuntime, shared, withToken } from './box-routes.ts';
import { shownBox } from './box-schema.ts';
import { mintProxyToken } from './box-secrets.ts';
import { changeBox, deleteBox, prepareRefresh, startBox, stopBox } from './box-writing.ts';
import { findBox, gatewayUrl, lockBox, toShownBox } from './boxes.ts';
import { announce } from './box-moves.ts';
import { readSnapshotBytes, readUsage } from './sizes/quotas.ts';

/** Clients send `{}`, and newer ones may send more. */
const anything = z.looseObject({}).optional();
const manage = { ...oneBox, method: 'POST', access: inWorkspace('sandboxes:manage') } as const;

export function createBoxActionRoutes(parts: BoxParts): readonly Route[] {
  return [
    startRoute(parts),
    stopRoute(parts),
    refreshRoute(parts),
    tokenRoute(parts),
    batchDeleteRoute(parts),
    usageRoute(parts),
  ];
}

const startRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...manage,
    path: '/boxes/{name}/start',
    summary: 'Start a sandbox that stopped or failed',
    tracking: { operation: 'start_sandbox' },
    body: anything,
    responses: { 202: shownBox },
    failures: [400, 404],
    async prepare() {
      requireRuntime(parts);
    },
    async handle(call) {
      const box = await startBox(parts, { ...call, box: call.params.name });
      return { body: toShownBox(box), resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
  });

const stopRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...manage,
    path: '/boxes/{name}/stop',
    summary: 'Stop a sandbox; its files are kept',
    tracking: { operation: 'stop_sandbox' },
    body: anything,
    responses: { 204: null },
    failures: [400, 404, 408],
    async handle(call) {
      const box = await stopBox({ ...call, box: call.params.name });
      return { resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    async respond(call, { resources = [] }) {
      for (const id of resources) await parts.waiting.untilStopped(call, id);
      return {};
    },
  });

const refreshRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...manage,
    path: '/boxes/{name}/refresh-secrets',
    summary: 'Give a sandbox the workspace secrets that its rules name as they are now',
    tracking: { operation: 'update_sandbox_secrets' },
    body: anything,
    responses: { 200: shownBox },
    failures: [400, 404],
    async prepare(call) {
      await parts.secrets.prepare();
      return prepareRefresh(parts, { ...call, box: call.params.name });
    },
    async handle(call, prepared) {
      const box = await changeBox(parts, { ...call, box: call.params.name }, {}, prepared);
      return { body: toShownBox(box), resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    keep: (_, { body }) => String(body.id),
    async respond(call, id) {
      return { body: toShownBox(await parts.waiting.untilApplied(call, id)) };
    },
  });

const NO_TOKEN = 'The proxy of this sandbox asks for no token: other machines cannot reach it';

const tokenRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...manage,
    path: '/boxes/{name}/proxy-token',
    summary: 'Replace the token of the proxy of a sandbox; only this response contains it, in proxy_url',
    tracking: { operation: 'create_sandbox_proxy_token' },
    body: anything,
    responses: { 201: shownBox },
    failures: [400, 404],
    prepare: () => parts.secrets.prepare(),
    async handle({ db, workspaceId, params: { name } }) {
      const box = await lockBox(db, { workspaceId, box: name });
      if (!box.needs_proxy_token) throw new DomainError('not_ready', NO_TOKEN);
      const version = box.token_version + 1;
      const sealed_token = await parts.secrets.sealToken(db, box, version, mintProxyToken());
      const changed = await db
        .updateTable('boxes')
        .set({ sealed_token, token_version: version })
        .where('id', '=', box.id)
        .returningAll()
        .returning(gatewayUrl)
        .executeTakeFirstOrThrow();
      await announce(db, box.id);
      return { body: toShownBox(changed), resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    keep: (_, { body }) => String(body.id),
    async respond(call, id) {
      return { body: await withToken(parts, call, await parts.waiting.untilApplied(call, id)) };
    },
  });

const MAX_NAMES = 100;

const batchDeleteRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/boxes/batch-delete',
    summary: 'Delete sandboxes by name or id; those that do not exist are skipped',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'delete_sandboxes' },
    body: z.object({ names: z.array(boxParams.shape.name).max(MAX_NAMES) }),
    responses: {
      200: z.strictObject({
        deleted: z.array(z.string()),
        skipped: z.array(z.strictObject({ name: z.string(), reason: z.string() })),
      }),
    },
    async handle(call) {
      const { db, workspaceId } = call;
      // In one order, so that two such requests do not wait for each other.
      const names = [...new Set(call.body.names)].toSorted();
      const found = await Promise.all(names.map((name) => findKnown(db, { workspaceId, box: name })));
      const ids = [...new Set(found.flatMap((box) => box?.id ?? []))].toSorted();
      for (const id of ids) await deleteBox(call, await lockBox(db, { workspaceId, box: id }));
      const deleted = names.filter((_, at) => found[at] !== undefined);
      const skipped = names.filter((_, at) => found[at] === undefined);
      const body = { deleted, skipped: skipped.map((name) => ({ name, reason: 'not found' })) };
      return { body, resources: ids };
    },
    after: () => parts.wake(),
  });

async function findKnown(...[db, key]: Parameters<typeof findBox>) {
  try {
    return await findBox(db, key);
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'not_found') return undefined;
    throw error;
  }
}

const count = z.int().min(0);
const usage = z
  .strictObject({
    ...{ sandbox_count: count, sandbox_limit: count, cpu_millicores: count, cpu_millicores_limit: count },
    ...{ memory_bytes: count, memory_bytes_limit: count, storage_bytes: count, storage_bytes_limit: count },
    ...{ snapshot_bytes: count, snapshot_bytes_limit: count },
  })
  .meta({ id: 'SandboxUsage' });

const usageRoute = ({ quotas }: BoxParts): Route =>
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/usage',
    summary: 'What the sandboxes of the workspace use, and how much they may',
    access: inWorkspace('sandboxes:read'),
    tracking: UNTRACKED_READ,
    responses: { 200: usage },
    async handle({ db, workspaceId }) {
      const used = await readUsage(db, workspaceId);
      const body = {
        ...{ sandbox_count: used.boxes, sandbox_limit: quotas.boxes },
        ...{ cpu_millicores: used.cpuMillicores, cpu_millicores_limit: quotas.cpuMillicores },
        ...{ memory_bytes: used.memoryBytes, memory_bytes_limit: quotas.memoryBytes },
        ...{ storage_bytes: used.storageBytes, storage_bytes_limit: quotas.storageBytes },
        snapshot_bytes: await readSnapshotBytes(db, workspaceId),
        snapshot_bytes_limit: quotas.snapshotBytes,
      };
      return { body };
    },
  });
