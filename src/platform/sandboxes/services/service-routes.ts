// `…/boxes/{name}/service-url`: the address of a port inside a box with a token for it; and the tokens of a box, listed and deleted.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import { type BoxParts, boxParams, oneBox, requireRuntime, shared } from '../box-routes.ts';
import { findBox, lockBox, type PlacedRow } from '../boxes.ts';
import { preferredPlace, urlOf } from './service-address.ts';
import { CODE_PARAMETER } from './service-request.ts';
import { issueToken, listTokens, deleteToken } from './service-tokens.ts';

export type ServiceRouteParts = Pick<BoxParts, 'hasRuntime'> & {
  readonly runtime: Wiring['config']['sandboxes']['runtime'];
  /** Whose host names are services; undefined: services have paths alone. */
  readonly domain: string | undefined;
};

export function createServiceRoutes(parts: ServiceRouteParts): readonly Route[] {
  return [createServiceUrl(parts), listServiceUrls, deleteServiceUrl];
}

const PROXY_PORT = 3128;
const MIN_SECONDS = 60;
const MAX_SECONDS = 86_400;
const DEFAULT_SECONDS = 3_600;

const port = z
  .int()
  .min(1)
  .max(65_535)
  .refine((one) => one !== PROXY_PORT, `Input must not be ${PROXY_PORT}, the port of the proxy`);
const LOGIN = 'Service URLs with a login are not supported: leave this out and use the token';

const wanted = z.object({
  port,
  expires_in_seconds: z
    .int()
    .min(MIN_SECONDS)
    .max(MAX_SECONDS)
    .nullable()
    .optional()
    .describe(`${DEFAULT_SECONDS} without it; never later than the API key of the request`),
  access: z.null({ error: LOGIN }).optional(),
});

const serviceUrl = z
  .strictObject({
    service_url: z.string().describe('For requests with the token as X-Langsmith-Sandbox-Service-Token'),
    browser_url: z.string().describe('Authenticates one browser, once'),
    token: z.string().describe('Only this response contains the token'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'SandboxServiceUrl' });

const createServiceUrl = (parts: ServiceRouteParts): Route =>
  defineRoute({
    ...oneBox,
    method: 'POST',
    path: '/boxes/{name}/service-url',
    summary: 'Get the address of a port inside a sandbox, with a token for it',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'create_sandbox_service_url' },
    body: wanted,
    responses: { 200: serviceUrl },
    failures: [400, 404],
    async prepare() {
      requireRuntime(parts);
    },
    async handle({ db, workspaceId, caller, params: { name }, body }) {
      const box = await lockBox(db, { workspaceId, box: name });
      const gatewayUrl = requireReachable(parts, box);
      const service = { boxId: box.id, port: body.port };
      const seconds = body.expires_in_seconds ?? DEFAULT_SECONDS;
      const { token, code, expiresAt } = await issueToken(db, { workspaceId, caller, service, seconds });
      const url = urlOf(preferredPlace({ gatewayUrl, domain: parts.domain }, service));
      return {
        body: {
          ...{ service_url: url, browser_url: `${url}?${CODE_PARAMETER}=${code}`, token },
          expires_at: expiresAt.toISOString(),
        },
        resources: [box.id],
        resourceNames: [box.name],
      };
    },
  });

/** The URL of the gateway of its machine. Throws `not_supported` and `not_ready`. */
function requireReachable({ runtime }: ServiceRouteParts, box: PlacedRow): string {
  if (box.status === 'deleting') throw new DomainError('not_ready', 'The sandbox is being deleted');
  if (box.gateway_url !== null) return box.gateway_url;
  if (box.runtime === 'attached' || runtime === 'attached') throw new DomainError('not_supported', ATTACHED);
  throw box.machine_id === null
    ? new DomainError('not_ready', 'The sandbox has not been started yet: wait until it is ready')
    : new DomainError('not_supported', NO_GATEWAY);
}

const ATTACHED = 'This sandbox is run by somebody else: its services cannot be reached from here';
const NO_GATEWAY = 'The machine of this sandbox serves no gateway';

const shown = z.strictObject({
  id: z.uuid(),
  port: z.int(),
  created_at: z.iso.datetime(),
  created_by: z.string(),
  expires_at: z.iso.datetime(),
});

const listServiceUrls = defineRoute({
  ...oneBox,
  method: 'GET',
  path: '/boxes/{name}/service-urls',
  summary: 'List the service URLs of a sandbox that have not expired, without their tokens',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  responses: { 200: z.strictObject({ service_urls: z.array(shown) }) },
  failures: [404],
  async handle({ db, workspaceId, params: { name } }) {
    const box = await findBox(db, { workspaceId, box: name });
    const rows = await listTokens(db, box.id);
    const service_urls = rows.map(({ created_at, expires_at, ...row }) => ({
      ...row,
      ...{ created_at: created_at.toISOString(), expires_at: expires_at.toISOString() },
    }));
    return { body: { service_urls } };
  },
});

const deleteServiceUrl = defineRoute({
  ...shared,
  method: 'DELETE',
  path: '/boxes/{name}/service-urls/{service_url_id}',
  summary: 'Delete a service URL of a sandbox; what uses it is ended',
  access: inWorkspace('sandboxes:manage'),
  tracking: { operation: 'delete_sandbox_service_url' },
  revokes: true,
  params: boxParams.extend({ service_url_id: z.guid() }),
  responses: { 204: null },
  failures: [404],
  async handle({ db, workspaceId, params: { name, service_url_id: id } }) {
    // Not locked: a request that starts the box locks the token first.
    const box = await findBox(db, { workspaceId, box: name });
    if (!(await deleteToken(db, { id, boxId: box.id })))
      throw new DomainError('not_found', 'There is no such service URL of this sandbox');
    return { resources: [box.id], resourceNames: [box.name] };
  },
});
