// The last refusals of one sandbox, for its own clients: many of them throw the body of a refused CONNECT away. A refusal
// without an authority is left out, because its client may not have been admitted to the sandbox that it is recorded under.
import type { ExchangeRecord, Recorder } from '../record.ts';
import { explainRefusal } from '../refusal.ts';

export type RecentRefusal = {
  readonly time: string;
  readonly method: string | undefined;
  readonly authority: string;
  readonly error: string;
  readonly message: string;
  readonly hint: string | undefined;
};

const MAX_REFUSALS = 20;

type Noted = Pick<RecentRefusal, 'method' | 'authority' | 'error'> & { readonly atMs: number };

export class RefusalHistory {
  readonly #noted: Noted[] = [];

  note({ outcome, reason, authority, method }: ExchangeRecord): void {
    if (outcome !== 'refused' && outcome !== 'failed') return;
    if (reason === undefined || authority === undefined) return;
    if (this.#noted.length >= MAX_REFUSALS) this.#noted.shift();
    this.#noted.push({ method, authority, error: reason, atMs: Date.now() });
  }

  /** The latest first, each with the public text of the catalogue. The cause stays in the record. */
  recent(): readonly RecentRefusal[] {
    return this.#noted.toReversed().flatMap(({ atMs, error, ...request }) => {
      const text = error === DISTRUSTS ? DISTRUST : explainRefusal(error);
      return text === undefined ? [] : { time: new Date(atMs).toISOString(), ...request, error, ...text };
    });
  }
}

// The client ended the handshake, so it read no response that says why.
const DISTRUSTS = 'client_distrusts_ca';
const DISTRUST = {
  message: 'the client does not trust the CA certificate of the proxy',
  hint: 'evaluate the script at /env of this host in the shell that starts the client',
};

/** The recorder, which also notes the refusals among its records. */
export function notingRefusals(recorder: Recorder, history: RefusalHistory): Recorder {
  return {
    get isBlocked() {
      return recorder.isBlocked;
    },
    counts: recorder.counts,
    emit(record, startedMs, endedMs) {
      history.note(record);
      recorder.emit(record, startedMs, endedMs);
    },
  };
}
