// `…/boxes`: create, list, read, change and delete. Paths, shapes and errors are those of public clients. The runtime is called
// by the reconciler, after the commit; who asks to wait waits there.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { sandboxErrors } from '../api/contract/error-formats.ts';
import type { JsonSource } from '../api/responses.ts';
import { type Responding, type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { SANDBOX_ID } from '../../base/sandbox-id.ts';
import { boxChange, boxList, boxQuery, newBox, type ShownBox, shownBox } from './box-schema.ts';
import { preparePolicy } from './box-policy.ts';
import { withProxyToken } from './box-secrets.ts';
import type { BoxWaiting } from './box-waiting.ts';
import { type BoxWriting, changeBox, createBox, deleteBox, prepareChange } from './box-writing.ts';
import { type AwaitedRow, findBox, listBoxes, lockBox, toShownBox, toStatusMessage } from './boxes.ts';

/** What the routes of boxes are made with. */
export type BoxParts = BoxWriting & {
  readonly waiting: BoxWaiting;
  /** False: no box can run on this installation. */
  readonly hasRuntime: boolean;
  /** Reconcile in this process without waiting for the notification. */
  wake(): void;
};

/** A name, or an id. */
export const boxParams = z.strictObject({
  name: z.string().min(1).max(63).regex(SANDBOX_ID, 'Input must be the name or the id of a sandbox'),
});

export const shared = { tag: 'Sandboxes', errors: sandboxErrors } as const;
export const oneBox = { ...shared, params: boxParams } as const;

const NO_RUNTIME =
  'This installation runs no sandboxes: its operator must set sandboxes.runtime (SALLYPORT_PLATFORM_SANDBOXES_RUNTIME)';

export function requireRuntime({ hasRuntime }: Pick<BoxParts, 'hasRuntime'>): void {
  if (!hasRuntime) throw new DomainError('not_supported', NO_RUNTIME);
}

/** The only responses that contain the token of the proxy are those that made it. */
export async function withToken({ secrets }: BoxParts, call: Responding, box: AwaitedRow): Promise<ShownBox> {
  const shown = toShownBox(box);
  if (!box.needs_proxy_token || box.proxy_url === null) return shown;
  const token = await call.write((trx) => secrets.openToken(trx, box));
  return { ...shown, proxy_url: withProxyToken(box.proxy_url, token) };
}

/** The response, or what is waited for: the rules of a box may be large. */
type KeptToWait =
  | { readonly body: JsonSource<ShownBox> }
  | { readonly id: string; readonly seconds?: number | null | undefined };

export function createBoxRoutes(parts: BoxParts): readonly Route[] {
  return [listRoute, createRoute(parts), readRoute, statusRoute, changeRoute(parts), deleteRoute(parts)];
}

const listRoute = defineRoute({
  ...shared,
  method: 'GET',
  path: '/boxes',
  summary: 'List the sandboxes of the workspace',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  query: boxQuery,
  responses: { 200: boxList },
  async handle({ db, workspaceId, query }) {
    const { boxes, offset, cursor } = await listBoxes(db, workspaceId, query);
    const shown = boxes.map(toShownBox);
    return { body: { sandboxes: shown, offset, items: shown, next_cursor: cursor } };
  },
});

const createRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/boxes',
    summary: 'Create a sandbox; with wait_for_ready the response waits until it runs',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'create_sandbox' },
    body: newBox,
    responses: { 201: shownBox },
    failures: [400, 404, 408, 409],
    async prepare(call) {
      requireRuntime(parts);
      await parts.secrets.prepare();
      const { proxy_config: document, proxy_profile_id: profileId } = call.body;
      return preparePolicy(parts.policies, call, { document: document ?? undefined, profileId });
    },
    async handle(call, policy) {
      const box = await createBox(parts, call, call.body, policy);
      return { body: toShownBox(box), resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    keep({ body: { wait_for_ready: waits, timeout: seconds } }, { body }): KeptToWait {
      return waits === true ? { id: String(body.id), seconds } : { body };
    },
    async respond(call, kept) {
      if ('body' in kept) return kept;
      const ready = await parts.waiting.untilReady(call, kept.id, kept.seconds);
      return { body: await withToken(parts, call, ready) };
    },
  });

const readRoute = defineRoute({
  ...oneBox,
  method: 'GET',
  path: '/boxes/{name}',
  summary: 'Read a sandbox by its name or id',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: shownBox },
  failures: [404],
  async handle({ db, workspaceId, params: { name } }) {
    return { body: toShownBox(await findBox(db, { workspaceId, box: name })) };
  },
});

const statusRoute = defineRoute({
  ...oneBox,
  method: 'GET',
  path: '/boxes/{name}/status',
  summary: 'Read the status of a sandbox',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: shownBox.pick({ status: true, status_message: true }) },
  failures: [404],
  async handle({ db, workspaceId, params: { name } }) {
    const box = await findBox(db, { workspaceId, box: name });
    return { body: { status: box.status, status_message: toStatusMessage(box) } };
  },
});

const changeRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...oneBox,
    method: 'PATCH',
    path: '/boxes/{name}',
    summary:
      'Change a sandbox; proxy_config is replaced as a whole, and the response waits until its proxy has it',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'update_sandbox' },
    body: boxChange,
    responses: { 200: shownBox },
    failures: [400, 404, 409],
    async prepare(call) {
      await parts.secrets.prepare();
      return prepareChange(parts, { ...call, box: call.params.name }, call.body);
    },
    async handle(call, prepared) {
      const box = await changeBox(parts, { ...call, box: call.params.name }, call.body, prepared);
      return { body: toShownBox(box), resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    keep({ body: { proxy_config: document, proxy_profile_id: profileId } }, { body }): KeptToWait {
      return document === undefined && profileId === undefined ? { body } : { id: String(body.id) };
    },
    async respond(call, kept) {
      if ('body' in kept) return kept;
      return { body: toShownBox(await parts.waiting.untilApplied(call, kept.id)) };
    },
  });

const deleteRoute = (parts: BoxParts): Route =>
  defineRoute({
    ...oneBox,
    method: 'DELETE',
    path: '/boxes/{name}',
    summary: 'Delete a sandbox; it is shown as deleting as long as something of it is left',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'delete_sandbox' },
    responses: { 204: null },
    failures: [404],
    async handle(call) {
      const box = await lockBox(call.db, { workspaceId: call.workspaceId, box: call.params.name });
      await deleteBox(call, box);
      return { resources: [box.id], resourceNames: [box.name] };
    },
    after: () => parts.wake(),
    async respond(call, { resources = [] }) {
      for (const id of resources) await parts.waiting.untilGone(call, id);
      return {};
    },
  });
