// Which sandbox a client of one listener belongs to: the listener's own, or the one whose token it shows. An unknown token
// is rejected even where no token is needed: a client of a sandbox that was removed must not become a client of another.
import type { Secret } from '../../base/secret.ts';
import type { Cidr } from '../../policy/authority/address.ts';
import type { ShownToken } from './client-filter.ts';
import type { ProxyContext } from '../context.ts';

export type Admission = {
  /** The listener's own sandbox. Refusals of clients whose sandbox is not known yet are recorded for it. */
  readonly own: ProxyContext;
  readonly allowClients: readonly Cidr[] | undefined;
  /** Undefined: a token is missing or unknown. */
  admit(shown: ShownToken): ProxyContext | undefined;
  /** Admits clients by `token`. False if the token belongs to a sandbox already, which then keeps it. */
  add(token: Secret, context: ProxyContext): boolean;
  remove(token: Secret): void;
  /** Every sandbox that has clients here. */
  served(): Iterable<ProxyContext>;
};

/** While `isOpen()`, clients without a token belong to the listener's own sandbox. */
export function createAdmission(options: {
  own: ProxyContext;
  isOpen: () => boolean;
  allowClients: readonly Cidr[] | undefined;
}): Admission {
  const { own, isOpen, allowClients } = options;
  // By fingerprint, a keyed digest, so that the time of a lookup discloses nothing about a token.
  const byToken = new Map<string, ProxyContext>();
  return {
    own,
    allowClients,
    admit(shown) {
      if (shown === 'none') return isOpen() ? own : undefined;
      return shown === 'unreadable' ? undefined : byToken.get(shown.fingerprint());
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
    served: () => new Set([own, ...byToken.values()]),
  };
}
