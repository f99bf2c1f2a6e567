// Which sandbox a client of one listener speaks for: the listener's own, or the one whose token it shows.
// A token that stands for nobody is refused even where none is needed: the client of a sandbox that was removed must
// not become a client of another.
import type { Secret } from '../../base/secret.ts';
import type { Cidr } from '../../policy/authority/address.ts';
import type { ShownToken } from './client-filter.ts';
import type { ProxyContext } from '../context.ts';

export type Admission = {
  /** The listener's own sandbox; it also answers for clients of which nothing is known yet. */
  readonly own: ProxyContext;
  readonly allowClients: readonly Cidr[] | undefined;
  /** Undefined: a token is needed, or the one shown stands for nobody. */
  admit(shown: ShownToken): ProxyContext | undefined;
  /** Lets clients in by `token`; one that stands for a sandbox already is left as it is, and the answer is false. */
  add(token: Secret, context: ProxyContext): boolean;
  remove(token: Secret): void;
  /** Every sandbox that has clients here. */
  served(): Iterable<ProxyContext>;
};

/** While `isOpen()`, clients without a token are the listener's own. */
export function createAdmission(options: {
  own: ProxyContext;
  isOpen: () => boolean;
  allowClients: readonly Cidr[] | undefined;
}): Admission {
  const { own, isOpen, allowClients } = options;
  // By fingerprint: a keyed digest, so that the time of a lookup tells nothing about a token.
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
