// Which upstream session a stream may use.
import type { ConnectionSource } from '../gate/acquisition.ts';
import type { ConnectionScope } from '../context.ts';
import { bindsConnection } from '../gate/connection-auth.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { dialTarget, poolKey, purposeOf } from '../gate/connection-source.ts';
import type { StreamSlot } from '../upstream/h2-session.ts';

/** Slots on upstream sessions for the requests of one client connection. */
export function placeLender(
  { id: clientId, scope }: { readonly id: number; readonly scope: ConnectionScope },
  plan: RequestPlan,
): ConnectionSource<StreamSlot> {
  const { sessions } = scope.context;
  const purpose = purposeOf(plan, ['h2']);
  const isPrivate = bindsConnection(plan.head);
  return {
    take: (policy) => sessions.take({ key: poolKey(policy, purpose), clientId, isPrivate }),
    open: async (policy, _plan, signal) =>
      scope.dialFailure?.take(policy) ??
      sessions.open(
        { key: poolKey(policy, purpose), clientId, isPrivate },
        dialTarget(policy, purpose),
        signal,
      ),
  };
}
