// The records of exchanges for those who follow them while they come. Without followers a record costs one comparison; its text is made
// at most once, where a follower wants it.
import { createStamp } from '../../base/log.ts';
import { type ExchangeRecord, recordMembers } from '../../proxy/record.ts';

/** Called within the exchange: it must be quick, and must not throw. `text` is the record as a JSON object. */
export type RecordFollower = (record: ExchangeRecord, text: () => string) => void;

export class LiveRecords {
  readonly #followers = new Set<RecordFollower>();
  readonly #stamp = createStamp<ExchangeRecord>(recordMembers, '{');

  get followers(): number {
    return this.#followers.size;
  }

  tell(record: ExchangeRecord): void {
    if (this.#followers.size === 0) return;
    let known: string | undefined;
    const text = (): string => (known ??= `${this.#stamp(record)}}`);
    for (const follower of this.#followers) follower(record, text);
  }

  /** Returns what ends it. */
  follow(follower: RecordFollower): () => void {
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }
}
