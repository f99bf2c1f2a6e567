// Which upstream session a stream may use.
import type { Authority } from '../../policy/authority/authority.ts';
import type { Policy } from '../../policy/policy.ts';
import type { ConnectionSource } from '../gate/acquisition.ts';
import type { ScopedClient } from '../context.ts';
import { bindsConnection } from '../gate/connection-auth.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { dialTarget, poolKey, purposeOf } from '../gate/connection-source.ts';
import type { Refusal } from '../refusal.ts';
import type { Protocol } from '../upstream/alpn.ts';
import type { StreamSlot } from '../upstream/h2-session.ts';
import type { WantedStream } from '../upstream/h2-sessions.ts';

const H2: readonly Protocol[] = Object.freeze(['h2']);

/** Slots on upstream sessions for the requests of one client connection. */
export class StreamSource implements ConnectionSource<StreamSlot> {
  readonly #client: ScopedClient;
  /** The last key, and what it is for: nearly all requests of a connection have the same. */
  #key = '';
  #keyOf: Authority | undefined;
  #keyRevision = -1;

  constructor(client: ScopedClient) {
    this.#client = client;
  }

  take(policy: Policy, plan: RequestPlan): StreamSlot | undefined {
    return this.#client.scope.context.sessions.take(this.#wanted(policy, plan));
  }

  async open(policy: Policy, plan: RequestPlan, signal: AbortSignal): Promise<StreamSlot | Refusal> {
    const { context, dialFailure } = this.#client.scope;
    const refused = dialFailure?.take(policy);
    if (refused) return refused;
    const target = dialTarget(policy, purposeOf(plan, H2));
    return context.sessions.open(this.#wanted(policy, plan), target, signal);
  }

  #wanted(policy: Policy, plan: RequestPlan): WantedStream {
    const { scheme, target, head } = plan;
    if (target.authority !== this.#keyOf || policy.revision !== this.#keyRevision) {
      this.#key = poolKey(policy, { scheme, authority: target.authority });
      this.#keyOf = target.authority;
      this.#keyRevision = policy.revision;
    }
    return { key: this.#key, clientId: this.#client.id, isPrivate: bindsConnection(head) };
  }
}
