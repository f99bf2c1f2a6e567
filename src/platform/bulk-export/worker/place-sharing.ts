// Which attempt gives its place to a workspace that waits, where all places of a worker are taken. Pure.

export type HeldPlace = {
  readonly workspaceId: string;
  /** By a clock that is never set. */
  readonly beganMs: number;
  /** That attempts of the run had before. */
  readonly interruptions: number;
};

/** Keeps doubling, so that a run with slow storage or a slow filter comes to its end also where others always wait. */
export function heldFor({ interruptions }: Pick<HeldPlace, 'interruptions'>, holdMs: number): number {
  return holdMs * 2 ** Math.min(interruptions, MAX_DOUBLINGS);
}

/** Longer than any attempt may take. */
const MAX_DOUBLINGS = 20;

/**
 * Of the workspace with the most places the newest attempt that has had its place for long enough: it loses the least. Undefined: there is
 * none yet.
 */
export function choosePreempted<P extends HeldPlace>(
  places: readonly P[],
  { nowMs, holdMs }: { readonly nowMs: number; readonly holdMs: number },
): P | undefined {
  const counts = new Map<string, number>();
  for (const { workspaceId: id } of places) counts.set(id, (counts.get(id) ?? 0) + 1);
  const countOf = ({ workspaceId: id }: P): number => counts.get(id) ?? 0;
  return places
    .filter((one) => nowMs - one.beganMs >= heldFor(one, holdMs))
    .toSorted((a, b) => countOf(b) - countOf(a) || b.beganMs - a.beganMs)[0];
}
