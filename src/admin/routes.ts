// The table of routes: everything that the admin API can do, as data. `GET /` shows it.
import { jsonResponse } from '../base/http/http-response.ts';
import { adminError, type AdminResponse } from './admin-errors.ts';
import { applyProxyConfig, showProxyConfig } from './config-routes.ts';
import { filterNames } from './records/record-filter.ts';
import { followRecords } from './records/record-routes.ts';
import type { AdminRequest, Method, Route } from './route.ts';
import {
  changeSandbox,
  changeSecrets,
  createSandbox,
  listSandboxes,
  listSecrets,
  removeSandbox,
  showSandbox,
} from './sandbox-routes.ts';
import type { AdminTarget } from './target.ts';

type Row = readonly [method: Method, action: string, what: string, handler: Route['handler']];

const CONFIG: readonly Row[] = [
  ['GET', 'proxy_config.show', 'shows the proxy_config in force; opaque values as is_set', showProxyConfig],
  ['PUT', 'proxy_config.apply', 'replaces it, whole; uses If-Match and If-None-Match', applyProxyConfig],
  ['POST', 'proxy_config.apply', 'the same as PUT', applyProxyConfig],
];
const SECRETS: readonly Row[] = [
  ['GET', 'workspace_secrets.list', 'lists the names of workspace secrets', listSecrets],
  ['PUT', 'workspace_secrets.change', 'merges secrets; null deletes; used by the next apply', changeSecrets],
  ['POST', 'workspace_secrets.change', 'the same as PUT', changeSecrets],
];
const SANDBOXES: readonly Row[] = [
  ['GET', 'sandboxes.list', 'lists the sandboxes', listSandboxes],
  ['POST', 'sandbox.create', 'creates a sandbox', createSandbox],
];
const SANDBOX: readonly Row[] = [
  ['GET', 'sandbox.show', 'shows a sandbox', showSandbox],
  ['PATCH', 'sandbox.change', 'changes a sandbox', changeSandbox],
  ['DELETE', 'sandbox.remove', 'removes a sandbox', removeSandbox],
];
const RECORDS: readonly Row[] = [
  ['GET', 'records.follow', 'streams the records of exchanges as JSON lines, while they come', followRecords],
];
/** What anyone may read: no config, host or name. */
const OPEN: readonly (readonly [path: string, ...Row])[] = [
  ['/', 'GET', 'routes.list', 'this list; a browser is led to /ui, the page', () => LIST],
  ['/openapi.json', 'GET', 'openapi.show', 'this API as an OpenAPI document', showOpenApi],
  ['/healthz', 'GET', 'health.show', '200 as long as the process runs', () => HEALTHY],
  ['/readyz', 'GET', 'readiness.show', '200 once requests are served, else 503', showReadiness],
  ['/v1/ca.pem', 'GET', 'ca.show', 'the CA certificate that clients must trust', showCa],
];

function at(path: string, rows: readonly Row[], about: Partial<Route> = {}): readonly Route[] {
  const subject = path.includes('{id}') ? 'path' : 'none';
  return rows.map(([method, action, what, handler]) => ({
    ...{ method, path, subject, needsToken: true, hasEtag: rows === CONFIG, action, what, handler },
    query: [],
    ...about,
  }));
}

export const routes: readonly Route[] = [
  ...OPEN.flatMap(([path, ...row]) => at(path, [row], { needsToken: false })),
  ...at('/v1/proxy_config', CONFIG, { subject: 'default' }),
  ...at('/v1/workspace_secrets', SECRETS, { subject: 'default' }),
  ...at('/v1/records', RECORDS, { query: filterNames }),
  ...at('/v1/sandboxes', SANDBOXES),
  ...at('/v1/sandboxes/{id}', SANDBOX),
  ...at('/v1/sandboxes/{id}/proxy_config', CONFIG),
  ...at('/v1/sandboxes/{id}/workspace_secrets', SECRETS),
];

const HEALTHY: AdminResponse = jsonResponse(200, { status: 'ok' });
const LIST: AdminResponse = jsonResponse(200, {
  routes: routes.map(({ method, path, what, needsToken: needs_token }) => ({
    ...{ method, path, what, needs_token },
  })),
});

async function showOpenApi(_request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const { toOpenApi } = await import('./openapi/openapi.ts');
  return jsonResponse(200, toOpenApi(routes, target.documentSchemas()));
}

function showReadiness(_request: AdminRequest, target: AdminTarget): AdminResponse {
  if (!target.isReady()) return adminError('not_ready', { waitMs: 1000 });
  const { done, failed, isCurrent: is_current } = target.reloads();
  return jsonResponse(200, {
    status: 'ready',
    reloads: { done, failed, is_current },
    ca: { is_ending: target.isAuthorityEnding() },
  });
}

function showCa(_request: AdminRequest, target: AdminTarget): AdminResponse {
  return { status: 200, fields: { 'Content-Type': 'application/x-pem-file' }, body: target.caPem };
}
