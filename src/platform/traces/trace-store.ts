// The port to where runs are stored. Nothing above it knows tables: another store keeps the same contract, whose tests are in
// `test/platform/traces/store/trace-store-checks.ts`. Projects, feedback and attachments are rows of PostgreSQL in any case.
import type { Database, Reader, Transaction } from '../store/database.ts';
import type { PagedRun, RunPageQuery } from './contract.ts';
import type { Filter } from './filter/filter.ts';
import type { PlacedPart, RunPart } from './runs/run-part.ts';

export type TraceStore = {
  /**
   * Makes ready for the runs of a request, before its transaction, which then waits for nobody else who does so. Throws `too_many`
   * where they start on more new days than one request may ask for; another attempt goes on from there.
   */
  prepareRuns(db: Reader, parts: readonly Pick<RunPart, 'start'>[]): Promise<void>;
  /**
   * Merges parts into the runs of the workspace, in the transaction of the request. At most one part for each run. Merging the same
   * part again changes nothing; parts of a run may come in any order, and from several processes at once. Throws `unavailable` where
   * what `prepareRuns` has made ready is gone.
   */
  mergeRuns(trx: Transaction, workspaceId: string, parts: readonly PlacedPart[]): Promise<MergedRuns>;
  /** Undefined where the workspace has no such run. */
  readRun(
    db: Reader,
    run: { readonly workspaceId: string; readonly id: string },
  ): Promise<StoredRun | undefined>;
  /** When a query that begins now has to end, by `performance.now()`: for one of several calls. */
  startDeadline(): number;
  /**
   * A page of runs in the order of their starts, and of their ids among equal ones; at most `limit`, without their payloads. Throws
   * `timeout` where that takes longer than a query may.
   */
  queryRuns(db: Reader, query: RunQuery): Promise<readonly FoundRun[]>;
  /** Payloads of runs by id, those that have at most so many stored bytes. A run that has gone meanwhile is absent. */
  readPayloads(
    db: Reader,
    wanted: {
      readonly workspaceId: string;
      readonly runs: readonly RunKey[];
      readonly fields: readonly PayloadField[];
      readonly maxBytes: number;
    },
  ): Promise<ReadonlyMap<string, Payloads>>;
  /** One payload in pieces, which are none where there is none. Throws `unavailable` where the run changes meanwhile. */
  readPayload(
    db: Reader,
    wanted: { readonly workspaceId: string; readonly run: RunKey; readonly field: PayloadField },
  ): AsyncIterable<Buffer>;
  /**
   * A page of whole runs in the order of their starts, and of their ids among equal ones, without their feedback. Only the days of the
   * window are read, and payloads only where they are among the columns. In the snapshot of the transaction.
   */
  readRunPage(trx: Database, read: RunPageRead): Promise<readonly PagedRun[]>;
  /** The runs below each of the runs, by its id, in the order of their starts; at most `limit` of each kind. */
  readDescendants(
    db: Reader,
    wanted: {
      readonly workspaceId: string;
      readonly runs: readonly FoundRun[];
      readonly limit: number;
      readonly deadlineMs?: number;
    },
  ): Promise<ReadonlyMap<string, Descendants>>;
  /** Of the selected runs. Throws `timeout` as `queryRuns` does. */
  readRunStats(db: Reader, selection: RunSelection): Promise<RunStats>;
  /** Where those of the runs are that the workspace has. */
  locateRuns(
    db: Reader,
    runs: { readonly workspaceId: string; readonly ids: readonly string[] },
  ): Promise<ReadonlyMap<string, RunLocation>>;
  /** Of the traces of each project that has had some, within the time that they are kept. Throws `timeout` as `queryRuns` does. */
  readProjectStats(
    db: Reader,
    projects: { readonly workspaceId: string; readonly ids: readonly string[] },
  ): Promise<ReadonlyMap<string, ProjectStats>>;
  /** Tables that there are, one for each day with runs. */
  countPartitions(db: Reader): Promise<number>;
  /** Makes ready for the runs of the next days. */
  prepareDays(db: Database): Promise<void>;
  /** Removes the runs of days all of which are older than `keptDays`, with their feedback and attachments. */
  expireRuns(
    db: Database,
    limits: { readonly keptDays: number; readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<ExpiredDays>;
  /** Removes what it can of the runs of a project, with their feedback and attachments, within limits of time; true once there are none. */
  removeRuns(db: Database, project: { readonly workspaceId: string; readonly id: string }): Promise<boolean>;
};

/** By whether they had a row before. */
export type MergedRuns = { readonly created: number; readonly updated: number };

/** Which runs: by ids alone, or those that fulfil the filters and have started within the window. */
export type RunSelection = { readonly workspaceId: string } & (
  | { readonly ids: readonly string[] }
  | {
      /** All of the workspace when absent. */
      readonly projects?: readonly string[];
      readonly window: RunWindow;
      readonly filter?: Filter;
      /** Of the root of the trace, which has started at most a day from the run. */
      readonly traceFilter?: Filter;
      /** Of any run of the trace that has started at most a day from the run. */
      readonly treeFilter?: Filter;
    }
);

/** ISO 8601 in UTC. Without `to` it has no end. */
export type RunWindow = { readonly from: string; readonly to?: string };

export type RunQuery = RunSelection & {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** Of `startDeadline`; a new one when absent. */
  readonly deadlineMs?: number;
  /** The last run of the page before. */
  readonly after?: RunPlace;
};

export type RunPageRead = Omit<RunPageQuery, 'filter'> & { readonly filter?: Filter };

export type RunPlace = Pick<StoredRun, 'start_time' | 'id'>;
export type RunKey = Pick<StoredRun, 'session_id' | 'start_time' | 'id'>;

export type PayloadField = 'inputs' | 'outputs' | 'extra' | 'events' | 'serialized' | 'error';
/** As they are stored: `unpackPayload` gives their JSON. */
export type Payloads = Readonly<Partial<Record<PayloadField, Buffer | null>>>;

/** A run without its payloads. */
export type FoundRun = Omit<StoredRun, `${PayloadField}_json`> & {
  /** The beginning of their JSON. */
  readonly inputs_preview: string;
  readonly outputs_preview: string;
  /** Bytes that are stored of each payload; null for one that was not sent. */
  readonly sizes: Readonly<Record<PayloadField, number | null>>;
};

/** Ids of runs. */
export type Descendants = { readonly direct: readonly string[]; readonly all: readonly string[] };
export type RunLocation = { readonly session_id: string; readonly trace_id: string };

/** Times are ISO 8601 in UTC with microseconds. Tokens and costs are decimal text. JSON is as it was sent. */
export type StoredRun = {
  readonly id: string;
  readonly session_id: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly parent_run_ids: readonly string[];
  readonly dotted_order: string;
  readonly name: string;
  readonly run_type: string;
  readonly status: 'error' | 'success' | 'pending';
  readonly start_time: string;
  readonly end_time: string | null;
  readonly first_token_time: string | null;
  readonly tags: readonly string[];
  readonly reference_example_id: string | null;
  readonly thread_id: string | null;
  readonly is_root: boolean;
  readonly prompt_tokens: string | null;
  readonly completion_tokens: string | null;
  readonly total_tokens: string | null;
  readonly prompt_cost: string | null;
  readonly completion_cost: string | null;
  readonly total_cost: string | null;
  /** As they are stored: `unpackPayload` gives their JSON. */
  readonly inputs_json: Buffer | null;
  readonly outputs_json: Buffer | null;
  readonly extra_json: Buffer | null;
  readonly events_json: Buffer | null;
  readonly serialized_json: Buffer | null;
  readonly error_json: Buffer | null;
};

/** UTC days. Those that are left have no runs any more, but queries read their tables: a later attempt drops them. */
export type ExpiredDays = { readonly dropped: readonly string[]; readonly left: readonly string[] };

/** Latencies are seconds, costs decimal text. */
export type ProjectStats = {
  readonly run_count: number;
  readonly latency_p50: number | null;
  readonly latency_p99: number | null;
  readonly first_token_p50: number | null;
  readonly first_token_p99: number | null;
  readonly total_tokens: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_cost: string | null;
  readonly prompt_cost: string | null;
  readonly completion_cost: string | null;
  readonly last_run_start_time: string | null;
  readonly error_rate: number;
  readonly streaming_rate: number;
};

/** Of any runs, not of traces alone. Latencies and times to the first token are seconds, costs decimal text. */
export type RunStats = Omit<ProjectStats, 'error_rate' | 'streaming_rate'> & {
  readonly error_rate: number | null;
  readonly streaming_rate: number | null;
  readonly median_tokens: number | null;
  readonly tokens_p99: number | null;
  readonly prompt_tokens_p50: number | null;
  readonly prompt_tokens_p99: number | null;
  readonly completion_tokens_p50: number | null;
  readonly completion_tokens_p99: number | null;
  readonly cost_p50: string | null;
  readonly cost_p99: string | null;
};
