// Callbacks to loopback or private addresses, for platforms whose operator does not allow them. Only what a URL says is checked
// here: the sidecar checks the address that a name resolves to, when it calls. Pure.
import { classifyAddress, parseAddress } from '../../base/address.ts';
import type { Issue } from '../../base/schema.ts';
import type { CallbackEntry } from '../../policy/document/proxy-config-schema.ts';

/** Disabled ones too: enabling one is a change of another field. */
export function findPrivateCallbacks(callbacks: readonly CallbackEntry[]): readonly Issue[] {
  return callbacks.flatMap(({ url }, index) =>
    isPublic(new URL(url).hostname)
      ? []
      : { loc: ['callbacks', index, 'url'], msg: PRIVATE, type: 'value_error' },
  );
}

const PRIVATE =
  'This platform calls back to public addresses only: name a public host, or have its operator allow private ones (sandboxes.private_callbacks)';

/** As URL has it: in lower case, an IPv6 address in brackets. */
function isPublic(hostname: string): boolean {
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''));
  if (address !== undefined) return classifyAddress(address) === 'public';
  return !/(?:^|\.)localhost\.?$/.test(hostname);
}
