// The methods of the protocol between an agent server and its worker: their parameters and results.
import type { JsonObject, JsonText, Typed } from './messages.ts';

/** What the server asks of a worker: parameters and result by the name of the method. */
export type WorkerCalls = {
  /** Streams events. `of` of its checkpoint calls is the id of this call. */
  readonly 'run.start': { readonly params: RunToStart; readonly result: RunEnd };
  readonly 'state.get': {
    readonly params: StateRequest & { readonly subgraphs?: boolean };
    readonly result: JsonText;
  };
  readonly 'state.history': {
    readonly params: StateRequest & {
      readonly limit: number;
      readonly before?: JsonObject;
      readonly filter?: JsonObject;
    };
    readonly result: JsonText;
  };
  readonly 'state.update': {
    readonly params: StateRequest & { readonly values: JsonText; readonly as_node?: string };
    /** The configurable of the new checkpoint, and the state after it. */
    readonly result: { readonly configurable: JsonObject; readonly state: JsonText };
  };
  readonly 'graph.schemas': {
    readonly params: { readonly graph_id: string; readonly config?: JsonObject };
    readonly result: JsonText;
  };
  readonly 'graph.drawing': {
    readonly params: {
      readonly graph_id: string;
      readonly config: JsonObject;
      readonly xray: boolean | number;
    };
    readonly result: JsonText;
  };
  readonly 'auth.authenticate': { readonly params: RequestToAuthenticate; readonly result: AgentUser };
  readonly 'auth.authorize': { readonly params: ToAuthorize; readonly result: Authorized };
  /** The body follows as `data`, and so does that of the response, after the result. */
  readonly 'http.request': { readonly params: AppRequest; readonly result: AppResponse };
};

/** What a worker asks of the server, always as part (`of`) of a `run.start` or a `state.*` call. */
export type ServerCalls = {
  readonly 'checkpoint.get': { readonly params: CheckpointPlace; readonly result: StoredCheckpoint | null };
  readonly 'checkpoint.list': {
    readonly params: {
      readonly thread_id: string;
      /** Absent: of all namespaces. */
      readonly checkpoint_ns?: string;
      readonly checkpoint_id?: string;
      readonly before?: string;
      readonly limit?: number;
      readonly filter?: JsonObject;
    };
    readonly result: readonly StoredCheckpoint[];
  };
  readonly 'checkpoint.put': {
    readonly params: {
      readonly thread_id: string;
      readonly checkpoint_ns: string;
      readonly checkpoint_id: string;
      readonly parent_checkpoint_id?: string;
      /** Without `channel_values`. */
      readonly checkpoint: Typed;
      readonly metadata: Typed;
      /** Plain JSON of the metadata, for filters. */
      readonly searched_metadata: JsonObject;
      /** Version of each channel that the checkpoint has, as text. */
      readonly versions: Readonly<Record<string, string>>;
      /** Values of the channels that are new. */
      readonly values: readonly {
        readonly channel: string;
        readonly version: string;
        readonly value: Typed;
      }[];
    };
    readonly result: null;
  };
  readonly 'checkpoint.put_writes': {
    readonly params: CheckpointPlace & {
      readonly task_id: string;
      readonly writes: readonly { readonly idx: number; readonly channel: string; readonly value: Typed }[];
    };
    readonly result: null;
  };
  /** Several of both, which are stored together or not at all. */
  readonly 'checkpoint.put_all': {
    readonly params: {
      readonly thread_id: string;
      readonly puts: readonly Omit<ServerCalls['checkpoint.put']['params'], 'thread_id'>[];
      readonly put_writes: readonly Omit<ServerCalls['checkpoint.put_writes']['params'], 'thread_id'>[];
    };
    readonly result: null;
  };
  readonly 'checkpoint.delete_thread': {
    readonly params: { readonly thread_id: string };
    readonly result: null;
  };
  readonly 'checkpoint.copy_thread': {
    readonly params: { readonly thread_id: string; readonly to_thread_id: string };
    readonly result: null;
  };
};

export type CheckpointPlace = {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
  /** Absent: the latest. */
  readonly checkpoint_id?: string;
};

export type StoredCheckpoint = {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id?: string;
  /** Of its namespace, where it was asked for by its id by a call that may write. */
  readonly latest_checkpoint_id?: string;
  readonly checkpoint: Typed;
  readonly metadata: Typed;
  readonly versions: Readonly<Record<string, string>>;
  readonly values: readonly { readonly channel: string; readonly version: string; readonly value: Typed }[];
  readonly writes: readonly {
    readonly task_id: string;
    readonly idx: number;
    readonly channel: string;
    readonly value: Typed;
  }[];
};

export type Durability = 'sync' | 'async' | 'exit';

export type RunToStart = {
  readonly run_id: string;
  readonly thread_id: string;
  readonly graph_id: string;
  readonly attempt: number;
  /** JSON: the input of the graph; absent with a command, and to go on from a checkpoint. */
  readonly input?: JsonText;
  /** JSON: `{resume?, update?, goto?}` */
  readonly command?: JsonText;
  /** JSON: the config of assistant and run, merged, with `configurable` of both, and what the authentication adds. */
  readonly config: JsonText;
  /** Names of `configurable` that must reach no checkpoint, event or log. */
  readonly hidden: readonly string[];
  readonly context?: JsonText;
  readonly metadata: JsonObject;
  readonly stream_mode: readonly string[];
  readonly stream_subgraphs: boolean;
  readonly interrupt_before?: readonly string[] | '*';
  readonly interrupt_after?: readonly string[] | '*';
  readonly checkpoint?: { readonly checkpoint_id?: string; readonly checkpoint_ns?: string };
  /** The last checkpoint of the thread as the run begins, null where there is none; absent: the worker asks for it. */
  readonly latest?: StoredCheckpoint | null;
  readonly durability: Durability;
  readonly feedback_keys?: readonly string[];
  /** Of a later attempt: it goes on from the last checkpoint of this run if there is one. */
  readonly is_resumed: boolean;
};

export type RunEnd = {
  readonly status: 'success' | 'interrupted';
  /** JSON: the values of the last state; `null` where the graph has none. */
  readonly values: JsonText;
  /** JSON: `{task id: [interrupt, …]}` */
  readonly interrupts: JsonText;
};

export type StateRequest = {
  readonly graph_id: string;
  readonly thread_id: string;
  /** JSON: the config of the assistant that wrote the thread; its `configurable` names the checkpoint. */
  readonly config: JsonText;
};

export type RequestToAuthenticate = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** What a handler returned, with what it may leave out filled in. */
export type AgentUser = JsonObject & {
  readonly identity: string;
  readonly display_name: string;
  readonly is_authenticated: boolean;
  readonly permissions: readonly string[];
};

export type ToAuthorize = {
  readonly resource: string;
  readonly action: string;
  readonly value: JsonObject;
  readonly user: AgentUser;
};

export type Authorized =
  | { readonly isAllowed: false }
  | {
      readonly isAllowed: true;
      /** `{key: value | {$eq: value} | {$contains: value}}`; absent: everything. */
      readonly filter?: JsonObject;
      /** As the handler left it: metadata may have been added. */
      readonly value: JsonObject;
    };

export type AppRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly hasBody: boolean;
};

export type AppResponse = {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
};
