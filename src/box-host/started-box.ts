// What the platform learns of a box that runs.
import type { OpenBox } from './engine.ts';
import type { BoxProxy } from './sidecars/box-proxy.ts';

export type StartedBox = {
  readonly proxy_url?: string;
  readonly needs_proxy_token?: boolean;
  readonly ca_pem?: string;
  readonly status_message?: string;
  readonly applied_version: number;
};
export type AppliedBox = Pick<StartedBox, 'applied_version' | 'status_message'>;

type Served = { readonly open: OpenBox; readonly proxy: BoxProxy };

export function needsToken({ listen }: OpenBox): boolean {
  return !('handle' in listen) && listen.needsToken;
}

export function show({ open, proxy, caPem }: Served & { readonly caPem: string }): StartedBox {
  const isAttached = !('handle' in open.listen);
  return {
    ...(isAttached && { proxy_url: proxy.url, needs_proxy_token: needsToken(open) }),
    ca_pem: caPem,
    ...toApplied({ open, proxy }),
  };
}

export function toApplied({ open, proxy }: Served): AppliedBox {
  return {
    ...(open.statusMessage !== undefined && { status_message: open.statusMessage }),
    applied_version: proxy.version,
  };
}
