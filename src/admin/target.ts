// What the admin API knows of the sidecar: a set of closures and the documents that pass through them.
import type { Issue } from '../base/schema.ts';
import type { Secret } from '../base/secret.ts';
import type { PageTarget } from './page/page-target.ts';

/** Why a change was not made. A message is a sentence for the operator that quotes no value. */
export type Problem =
  /** `loc` is relative to the document that was given. */
  | { readonly kind: 'invalid'; readonly issues: readonly Issue[] }
  | { readonly kind: Exclude<ProblemKind, 'invalid'>; readonly message: string };

export type ProblemKind =
  | 'invalid'
  | 'not_found'
  | 'exists'
  | 'stale'
  | 'protected'
  | 'full'
  | 'storage_failed'
  | 'records_blocked'
  | 'namespaces_off'
  | 'not_handed_over'
  | 'listener_rejected'
  | 'busy'
  | 'parser_failed';

export type Change<T> = { readonly ok: true; readonly value: T } | Refused;
export type Refused = { readonly ok: false; readonly problem: Problem };

export function done<T>(value: T): Change<T> {
  return { ok: true, value };
}

export function refused(problem: Problem): Refused {
  return { ok: false, problem };
}

/**
 * What a writer expects to replace: one of these entity tags, anything that exists (`*`), or no condition; `etag` is the
 * one that the document itself contained. Entity tags are as in the field, quotes included (RFC 9110 §8.8.3); an empty
 * list matches nothing.
 */
export type Expected = { readonly etags?: readonly string[] | '*'; readonly etag?: string };

export type AppliedConfig = {
  readonly revision: number;
  readonly etag: string;
  readonly warnings: readonly Issue[];
};
export type ShownConfig = { readonly revision: number; readonly etag: string; readonly document: unknown };

export type ShownSandbox = {
  readonly id: string;
  /** The URL of the proxy that this sandbox uses. */
  readonly proxy: string;
  readonly has_token: boolean;
  /** Of its own CA, if it has one: what its clients must trust in place of that of the process. */
  readonly ca_pem?: string;
  readonly revision: number;
  readonly limits: Readonly<Record<string, number>>;
  readonly connections: number;
  readonly created_at: string;
  /** Why it has served no client since the start. */
  readonly failed?: string;
};

export type ChangedSecrets = { readonly names: readonly string[]; readonly warnings: readonly Issue[] };
/** A token that was created here is shown once. */
export type ChangedSandbox = { readonly sandbox: ShownSandbox; readonly token?: string };
export type CreatedSandbox = ChangedSandbox & { readonly warnings: readonly Issue[] };

/** Of the operator's files, since the start. */
export type Reloads = {
  readonly done: number;
  readonly failed: number;
  /** False: the last one failed, and what was active before still is. */
  readonly isCurrent: boolean;
};

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>;
/** Of the documents that a caller sends, as they are parsed. */
export type DocumentSchemas = {
  readonly proxyConfig: JsonSchema;
  readonly sandboxCreation: JsonSchema;
  readonly sandboxChange: JsonSchema;
};

/** What filters and the page see of the record of an exchange that has just ended. */
export type LiveRecord = {
  readonly sandbox: string;
  readonly method?: string | undefined;
  /** Without its query. */
  readonly path?: string | undefined;
  readonly reason?: string | undefined;
  readonly duration_ms?: number | undefined;
  readonly authority?: string | undefined;
  readonly rule?: string | undefined;
  readonly callback?: string | undefined;
  readonly outcome?: string | undefined;
  readonly status?: number | undefined;
};

export type LiveRecords = {
  /** What `outcome` may be. */
  readonly outcomes: readonly string[];
  /**
   * Calls `follower` with each record until the returned function is called. `text` is the record as a JSON object. It is called within
   * the exchange: it must be quick, and must not throw.
   */
  follow(follower: (record: LiveRecord, text: () => string) => void): () => void;
};

export type AdminTarget = {
  documentSchemas(): DocumentSchemas;
  isReady(): boolean;
  reloads(): Reloads;
  /** Called with the first request for a page. */
  loadPage(): Promise<PageTarget>;
  readonly records: LiveRecords;
  readonly caPem: string;
  /** Whether the CA that signs ends in less than 30 days. */
  isAuthorityEnding(): boolean;
  /** Undefined: no such sandbox. */
  proxyConfig(id: string): ShownConfig | undefined;
  applyProxyConfig(id: string, document: unknown, expected: Expected): Promise<Change<AppliedConfig>>;
  /** Undefined: no such sandbox. */
  secretNames(id: string): readonly string[] | undefined;
  /** null deletes. */
  changeSecrets(id: string, changes: ReadonlyMap<string, Secret | null>): Promise<Change<ChangedSecrets>>;
  sandboxes(): readonly ShownSandbox[];
  sandbox(id: string): ShownSandbox | undefined;
  /** Validates the document itself: `{id?, listen?, token?, ca?, limits?, proxy_config?, workspace_secrets?}`. */
  createSandbox(document: unknown): Promise<Change<CreatedSandbox>>;
  changeSandbox(id: string, document: unknown): Promise<Change<ChangedSandbox>>;
  removeSandbox(id: string): Promise<Change<undefined>>;
};
