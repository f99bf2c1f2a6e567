// Paths of the public contract that this version does not have: 501, so that clients tell them from a wrong path. What is
// not found stays 404.
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { sandboxErrors } from '../api/contract/error-formats.ts';
import { type Method, type Route, defineRoute } from '../api/route.ts';
import { oneBox, shared } from './box-routes.ts';
import { findBox } from './boxes.ts';

const response = z
  .strictObject({ detail: z.strictObject({ error: z.literal('NotSupported'), message: z.string() }) })
  .meta({ id: 'SandboxNotSupported' });
const tracking = { untracked: 'it does nothing' } as const;
const anything = z.looseObject({}).optional();

const notSupported = (message: string) => ({
  body: { detail: { error: 'NotSupported' as const, message } },
});

const CAPTURE =
  'Snapshots of sandboxes are not supported by this version: make one of a directory or an archive';
const REGISTRIES = 'Registries are not supported by this version';

/** Of a box: which one is checked first. */
function ofBox(path: string, message: string): Route {
  return defineRoute({
    ...oneBox,
    ...{ method: 'POST', path: `/boxes/{name}/${path}`, summary: message, tracking, body: anything },
    access: inWorkspace('sandboxes:manage'),
    responses: { 501: response },
    failures: [404],
    async handle({ db, workspaceId, params: { name } }) {
      await findBox(db, { workspaceId, box: name });
      return notSupported(message);
    },
  });
}

function ofWorkspace(method: Method, path: string, summary: string): Route {
  return defineRoute({
    ...shared,
    ...{ method, path, summary, tracking },
    ...(method === 'GET' || method === 'DELETE' ? {} : { body: anything }),
    access: inWorkspace(method === 'GET' ? 'sandboxes:read' : 'sandboxes:manage'),
    responses: { 501: response },
    handle: async () => notSupported(summary),
  });
}

function ofId(method: Method, path: string, name: string, summary: string): Route {
  return defineRoute({
    ...shared,
    ...{ method, path, summary, tracking, errors: sandboxErrors },
    ...(method === 'GET' || method === 'DELETE' ? {} : { body: anything }),
    params: z.strictObject({ [name]: z.guid() }),
    access: inWorkspace(method === 'GET' ? 'sandboxes:read' : 'sandboxes:manage'),
    responses: { 501: response },
    handle: async () => notSupported(summary),
  });
}

export const unsupportedRoutes: readonly Route[] = [
  ofBox('snapshot', CAPTURE),
  ofBox('download-url', 'Download links are not supported by this version'),
  ofWorkspace('GET', '/registries', REGISTRIES),
  ofWorkspace('POST', '/registries', REGISTRIES),
  ofId('GET', '/registries/{registry_id}', 'registry_id', REGISTRIES),
  ofId('PATCH', '/registries/{registry_id}', 'registry_id', REGISTRIES),
  ofId('DELETE', '/registries/{registry_id}', 'registry_id', REGISTRIES),
];
