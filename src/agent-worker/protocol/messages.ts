// What an agent server and its worker say to each other: JSON, one message a frame. docs/worker-protocol.md describes it for
// other languages. Either side may call the other; ids of calls are chosen by the side that calls.

/** A worker of another version is refused. */
export const PROTOCOL_VERSION = 1;

/** Of one frame. */
export const MAX_FRAME_BYTES: number = 64 * 1024 * 1024;

/** Of the frame of a message that has no values of the deployment in it: `log` and `ready`, for example. */
export const MAX_SMALL_FRAME_BYTES: number = 1024 * 1024;

/** A value as the serializer of the deployment wrote it. */
export type Typed = {
  readonly type: string;
  /** UTF-8, for the type `json`. */
  readonly text?: string;
  /** Base64, for every other type. */
  readonly base64?: string;
};

export type JsonObject = Readonly<Record<string, unknown>>;

/** JSON in one line: it passes through the server unread. */
export type JsonText = string;

export type WorkerEvent = {
  /** Of the stream: `values`, `messages/partial`, `updates|ns`. */
  readonly event: string;
  readonly data: JsonText;
};

/** An error of graph or handler code, as clients see it. */
export type ThrownError = {
  /** Its class: `TypeError`. */
  readonly error: string;
  readonly message: string;
};

/** Every message is one of these. */
export type Message =
  | { readonly type: 'hello'; readonly version: number; readonly language?: string; readonly pid?: number }
  /** From the server, after hello: what to load. The worker sends `ready` or `failed` then. */
  | { readonly type: 'load'; readonly deployment: DeploymentToLoad }
  | { readonly type: 'ready'; readonly loaded: Loaded }
  | { readonly type: 'failed'; readonly failure: LoadFailure }
  | {
      readonly type: 'call';
      readonly id: number;
      readonly method: string;
      readonly params: unknown;
      readonly of?: number;
    }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: CallFailure }
  /** Of a call that streams; each counts against the credit of the call. */
  | { readonly type: 'events'; readonly id: number; readonly events: readonly WorkerEvent[] }
  /** Bytes of `http.request` and its response, base64. */
  | { readonly type: 'data'; readonly id: number; readonly base64: string; readonly isLast?: true }
  /** The other side may send so many more bytes of events or data of this call. */
  | { readonly type: 'credit'; readonly id: number; readonly bytes: number }
  | { readonly type: 'cancel'; readonly id: number; readonly reason: CancelReason }
  | { readonly type: 'ping'; readonly sequence: number }
  | { readonly type: 'pong'; readonly sequence: number }
  | { readonly type: 'log'; readonly level: LogLevel; readonly message: string; readonly of?: number };

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** `interrupt` and `rollback`: somebody asked for it; `timeout`; `lost`: the server does not want the result any more. */
export type CancelReason = 'interrupt' | 'rollback' | 'timeout' | 'lost';

export type DeploymentToLoad = {
  /** The directory of the configuration file: what packages are resolved from. */
  readonly root: string;
  /** Bundled modules, by the id of a graph. */
  readonly graphs: Readonly<Record<string, ModuleExport>>;
  readonly auth?: ModuleExport;
  readonly app?: ModuleExport;
};

export type ModuleExport = {
  /** The bundled file. */
  readonly file: string;
  readonly name: string;
  /** As the configuration names it, for messages. */
  readonly source: string;
};

export type Loaded = {
  /** Version of `@langchain/langgraph`, or of what the language has instead. */
  readonly library: string;
  readonly hasAuth: boolean;
  readonly hasApp: boolean;
};

export type LoadFailure = {
  /** `graphs.agent`, `auth.path` */
  readonly key: string;
  readonly message: string;
};

export type CallFailure =
  /** Code of the deployment threw. `status` and `headers` are those of an HTTPException of an authentication handler. */
  | (ThrownError & {
      readonly kind: 'thrown';
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
    })
  /** The call ended because it was cancelled. */
  | { readonly kind: 'cancelled'; readonly reason: CancelReason }
  /** What was asked for is not there, or cannot be done; `not_found` of a checkpoint, for example. */
  | {
      readonly kind: 'refused';
      readonly code: 'not_found' | 'invalid' | 'unsupported';
      readonly message: string;
    };
