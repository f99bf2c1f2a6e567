// What the processes of a database tell each other about runs, by NOTIFY. A notice that is lost delays: whoever waits for one
// also reads the tables now and then.
import { z } from '../../../base/schema.ts';

export type RunNotice =
  /** A run of this thread may be claimed. */
  | { readonly kind: 'new'; readonly threadId: string }
  /** `cancel`: its row has a cancellation. `ended`: it has a final status, or is deleted. */
  | { readonly kind: 'cancel' | 'ended'; readonly runId: string }
  /** `watch`: a process wants to read its events. `events`: some were stored. */
  | { readonly kind: 'watch' | 'events'; readonly runId: string };

/** The payload on the channel `agent_runs`. */
export function formatRunNotice(notice: RunNotice): string {
  return `${notice.kind} ${notice.kind === 'new' ? notice.threadId : notice.runId}`;
}

const KINDS = ['cancel', 'ended', 'watch', 'events'] as const;
const ID = z.uuid();

/** Undefined for what this version does not know. */
export function parseRunNotice(payload: string): RunNotice | undefined {
  const [kind, id, ...rest] = payload.split(' ');
  if (rest.length > 0 || !ID.safeParse(id).success || id === undefined) return undefined;
  if (kind === 'new') return { kind, threadId: id };
  const known = KINDS.find((one) => one === kind);
  return known && { kind: known, runId: id };
}
