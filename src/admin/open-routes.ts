// What anyone may read: that the process lives, that it is ready, and the CA certificate. No config, host or name.
import { type AdminResponse, ok, refused, retryAfter } from './answer.ts';
import type { AdminRequest } from './route.ts';
import type { AdminTarget } from './target.ts';

export function showHealth(): AdminResponse {
  return ok({ status: 'ok' });
}

export function showReadiness(_request: AdminRequest, target: AdminTarget): AdminResponse {
  if (target.isReady()) return ok({ status: 'ready' });
  const detail = 'This sidecar does not serve requests yet: ask again';
  return refused({ status: 503, reason: 'not_ready', detail, fields: retryAfter(1000) });
}

export function showCa(_request: AdminRequest, target: AdminTarget): AdminResponse {
  return { status: 200, content: { type: 'application/x-pem-file', text: target.caPem } };
}
