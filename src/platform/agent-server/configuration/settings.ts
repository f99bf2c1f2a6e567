// The settings of an agent server, besides its configuration file: variables and flags. Each is checked when the server starts.

/**
 * Who is let in. `handler`: whom the authentication handler of the deployment accepts. `keys`: whoever has a key of the
 * platform, all as one owner. `key_file`: whoever has a key of the file. `none`: everybody who reaches the listener.
 */
export type AgentAccess = 'handler' | 'keys' | 'key_file' | 'none';

export type AgentSettings = {
  readonly access: AgentAccess;
  /** One key a line. With a handler, these keys admit the studio. */
  readonly keyFile: string | undefined;
  /** Whether a key of the platform in the database counts; with a handler, for the studio. */
  readonly acceptsPlatformKeys: boolean;
  /** `--studio`, on loopback alone: the header of the studio counts without a key. */
  readonly isStudio: boolean;
  /** Runs that one worker has at once. */
  readonly jobsPerWorker: number;
  /** Workers at most. */
  readonly workers: number;
  /** A run that takes longer ends as `timeout`. */
  readonly runTimeoutSeconds: number;
  /** For runs that are under way when the process begins to drain. */
  readonly drainSeconds: number;
  /** How long the events of a resumable run are kept after its end. */
  readonly resumableTtlSeconds: number;
  readonly errorFormat: 'json' | 'text';
  /** For test suites: `POST /internal/truncate` deletes everything. */
  readonly allowsTruncate: boolean;
};

/** The workspace whose data key seals the users of runs; made at the start. */
export const AGENT_WORKSPACE_ID = 'a6e27000-0000-4000-8000-000000000002';
export const AGENT_ORGANIZATION_ID = 'a6e27000-0000-4000-8000-000000000001';
