// What the clients of a storm know: their requests and the responses. The database is compared with it afterwards.

export type Operation =
  | 'create_listener'
  | 'update_listener'
  | 'delete_listener'
  | 'create_api_key'
  | 'delete_api_key';

/** What a client knows of a write: it was acknowledged, its response was lost, or it was never sent. */
export type Fate = 'done' | 'lost' | 'none';

/** Only one client writes to a listener, and it stops after a lost response, so that the row shows the outcome of that write. */
export type ListenerStory = {
  readonly computeId: string;
  readonly firstVersion: string;
  /** Undefined until its creation is acknowledged. */
  id: string | undefined;
  /** Sent again, it was rejected as a duplicate: the creation whose response was lost is stored. */
  isKnownStored: boolean;
  /** Of the acknowledged changes, in their order. */
  readonly versions: string[];
  lostVersion: string | undefined;
  deletion: Fate;
};

export type KeyStory = { readonly description: string; id: string | undefined; deletion: Fate };

/** A write that the platform had to reject. */
export type Rejection = {
  readonly operation: Operation;
  /** The id in the path, of a listener that does not exist. */
  readonly id: string | undefined;
  readonly hasResponded: boolean;
};

/** Records of one source, numbered from 1; a batch is sent until it is acknowledged. */
export type RecordStory = { readonly source: string; readonly sandbox: string; last: number; added: number };

export type Ledger = {
  readonly listeners: ListenerStory[];
  readonly keys: KeyStory[];
  readonly records: RecordStory[];
  readonly rejections: Rejection[];
  /** Compute ids of creations that were rejected with 4xx. */
  readonly unwritten: string[];
  /** What no client may see. */
  readonly errors: string[];
  readonly lost: { responses: number; resent: number };
  readonly latenciesMs: Map<string, number[]>;
};

export function createLedger(): Ledger {
  return {
    listeners: [],
    keys: [],
    records: [],
    rejections: [],
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

/** The number of all responses. */
export function responsesIn({ latenciesMs }: Ledger): number {
  return [...latenciesMs.values()].reduce((sum, each) => sum + each.length, 0);
}
