// Notices of revocations to all processes of a database, sent with the commit: whoever holds on to what was granted, such as an
// open stream, confirms it again. A notice is lost with the connection that receives it, so that a sweep stays necessary.
import type { Database } from '../store/database.ts';
import { type Notifications, notify } from '../store/postgres/notifications.ts';

/** Access in this organization was taken away. */
export async function sendRevocation(db: Database, organizationId: string): Promise<void> {
  await notify(db, 'revocations', organizationId);
}

/** Calls `confirm` for the organization of each notice, and for all organizations where notices may have been missed. */
export async function watchRevocations(
  notifications: Notifications,
  confirm: (organizationId?: string) => void,
): Promise<void> {
  await notifications.subscribe('revocations', { onMessage: confirm, onMissed: () => confirm() });
  // What was revoked before is in no notice.
  confirm();
}
