// Finds the sandbox of each client of one listener: the sandbox of the token that the client presents or, without a token,
// the listener's own. An unknown token is rejected even where none is required: the client of a removed sandbox must not
// become a client of another one.
import type { Secret } from '../../base/secret.ts';
import type { Cidr } from '../../base/address.ts';
import type { PresentedToken } from './client-filter.ts';
import type { ProxyContext } from '../context.ts';

export type Admission = {
  /** The listener's own sandbox. A client that is refused before its sandbox is known is recorded under this one. */
  readonly own: ProxyContext;
  readonly allowClients: readonly Cidr[] | undefined;
  /** The sandbox of the client. Undefined if the token is unknown, malformed, or missing although one is required. */
  admit(presented: PresentedToken): ProxyContext | undefined;
  /** Admits clients with `token` to the sandbox of `context`. False, without effect, if the token is already assigned. */
  add(token: Secret, context: ProxyContext): boolean;
  remove(token: Secret): void;
  /** Every sandbox that a client of this listener can be admitted to, each once. */
  sandboxes(): Iterable<ProxyContext>;
};

/** While `isOpen()`, no token is required: clients without one are admitted to the listener's own sandbox. */
export function createAdmission(options: {
  own: ProxyContext;
  isOpen: () => boolean;
  allowClients: readonly Cidr[] | undefined;
}): Admission {
  const { own, isOpen, allowClients } = options;
  // Keyed by fingerprint (a keyed digest), so that the duration of a lookup discloses nothing about a token.
  const byToken = new Map<string, ProxyContext>();
  return {
    own,
    allowClients,
    admit(presented) {
      if (presented === 'none') return isOpen() ? own : undefined;
      return presented === 'malformed' ? undefined : byToken.get(presented.fingerprint());
    },
    add(token, context) {
      const key = token.fingerprint();
      if (byToken.has(key)) return false;
      byToken.set(key, context);
      return true;
    },
    remove(token) {
      byToken.delete(token.fingerprint());
    },
    sandboxes: () => new Set([own, ...byToken.values()]),
  };
}
