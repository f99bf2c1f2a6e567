// The findings of a verification, each in one sentence. Pure.

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
  /** The first event that it concerns. */
  readonly seq: bigint;
  /** The last one, when there are several. */
  readonly lastSeq?: bigint;
  /** Of the event, when it can be read. */
  readonly id?: string;
  readonly sentence: string;
};

/** One line, without its line break. */
export function formatFinding({ kind, organizationId, seq, lastSeq, id, sentence }: Finding): string {
  const events = lastSeq === undefined || lastSeq === seq ? `event ${seq}` : `events ${seq} to ${lastSeq}`;
  const subject = id === undefined ? events : `${events} (${id})`;
  return `${kind}: organization ${organizationId}, ${subject}: ${sentence}`;
}
