// What verification can find, each in one sentence. Pure.

export type FindingKind =
  | 'edited'
  | 'reordered'
  | 'deleted'
  | 'inserted'
  | 'truncated'
  | 'unlinked'
  | 'rewritten'
  | 'removed'
  | 'expired_early'
  | 'head_edited'
  | 'checkpoint_forged'
  | 'checkpoint_missing';

export type Finding = {
  readonly kind: FindingKind;
  readonly organizationId: string;
  /** The first event that it is about. */
  readonly seq: bigint;
  /** The last one, where there are several. */
  readonly lastSeq?: bigint;
  /** Of the event, where it is there to be read. */
  readonly id?: string;
  readonly sentence: string;
};

/** One line, without its end. */
export function formatFinding({ kind, organizationId, seq, lastSeq, id, sentence }: Finding): string {
  const events = lastSeq === undefined || lastSeq === seq ? `event ${seq}` : `events ${seq} to ${lastSeq}`;
  const named = id === undefined ? events : `${events} (${id})`;
  return `${kind}: organization ${organizationId}, ${named}: ${sentence}`;
}
