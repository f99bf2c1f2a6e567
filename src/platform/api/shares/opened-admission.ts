// The admission of a process, opened with what it watches: the last uses of keys are stored until it is closed, and streams of callers who
// lose their access end.
import { describeBug, type Log } from '../../../base/log.ts';
import { createAuthenticator } from '../../identity/authentication.ts';
import { watchRevocations } from '../../identity/revocation-notices.ts';
import type { RequestPools } from '../../store/pools.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import type { TenantLimits } from '../limits.ts';
import { type Admission, createAdmission } from './admission.ts';

type Ground = {
  readonly pools: RequestPools;
  readonly notifications: Notifications;
  readonly log: Log;
};

/** What it starts ends with `opened`. */
export function openAdmission(
  limits: TenantLimits,
  { pools, notifications, log }: Ground,
  opened: AsyncDisposableStack,
): Admission {
  const authenticator = createAuthenticator({
    now: () => Date.now(),
    onError: (error) => log.warn(describeBug(error), 'the last use of a key was not stored'),
  });
  opened.defer(() => authenticator.settle());
  const admission = createAdmission({ pools, authenticator, log, limits });
  // Not waited for: without the connection the streams are confirmed every half minute.
  void watchRevocations(notifications, (organizationId) => void admission.streams.sweep(organizationId));
  return admission;
}
