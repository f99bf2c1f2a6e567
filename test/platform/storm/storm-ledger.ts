// What the clients of a storm know: what they sent and what was said to it. It must not know what the database holds;
// that is held against it afterwards.

export type Operation =
  | 'create_listener'
  | 'update_listener'
  | 'delete_listener'
  | 'create_api_key'
  | 'delete_api_key';

/** What a client knows of a write: its success was answered, its answer was lost, or it was never sent. */
export type Fate = 'done' | 'lost' | 'none';

/** One client writes to a listener, and no longer once an answer was lost, so that its row says what became of that. */
export type ListenerStory = {
  readonly computeId: string;
  readonly firstVersion: string;
  /** Undefined while its creation was not answered. */
  id: string | undefined;
  /** Sent again, it was refused as a duplicate: the creation whose answer was lost has been kept. */
  isKnownKept: boolean;
  /** Of the changes that were answered, in their order. */
  readonly versions: string[];
  lostVersion: string | undefined;
  deletion: Fate;
};

export type KeyStory = { readonly description: string; id: string | undefined; deletion: Fate };

/** A write that had to be refused. */
export type Refusal = {
  readonly operation: Operation;
  /** Of nothing; in the path. */
  readonly id: string | undefined;
  readonly hasResponded: boolean;
};

/** Records of one source, numbered from 1; a batch is sent until it is answered. */
export type RecordStory = { readonly source: string; readonly sandbox: string; last: number; added: number };

export type Ledger = {
  readonly listeners: ListenerStory[];
  readonly keys: KeyStory[];
  readonly records: RecordStory[];
  readonly refusals: Refusal[];
  /** Compute ids of creations that were answered 4xx. */
  readonly unwritten: string[];
  /** What no client should have seen. */
  readonly errors: string[];
  readonly lost: { responses: number; resent: number };
  readonly latenciesMs: Map<string, number[]>;
};

export function createLedger(): Ledger {
  return {
    listeners: [],
    keys: [],
    records: [],
    refusals: [],
    unwritten: [],
    errors: [],
    lost: { responses: 0, resent: 0 },
    latenciesMs: new Map(),
  };
}

export function noteLatency({ latenciesMs }: Ledger, what: string, ms: number): void {
  const known = latenciesMs.get(what) ?? [];
  if (known.length === 0) latenciesMs.set(what, known);
  known.push(ms);
}

/** Of every kind. */
export function responsesIn({ latenciesMs }: Ledger): number {
  return [...latenciesMs.values()].reduce((sum, each) => sum + each.length, 0);
}
