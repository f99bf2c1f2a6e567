// What those who run agent servers as deployments need of them: what such a server reads at its start, and the fields by which its
// gateway and its runner speak to it.

/**
 * The variable that names the descriptor on which the server finds its input, as JSON. Everything secret is there: arguments,
 * environment and files of a process can be read by other programs.
 */
export const INPUT_VARIABLE = 'SALLYPORT_AGENT_INPUT';

/** At most so many bytes. */
export const MAX_INPUT_BYTES: number = 4 * 1024 * 1024;

export type AgentInput = {
  /** Of the workers: over those that `env` of the configuration file gives. */
  readonly variables: Readonly<Record<string, string>>;
  readonly databaseUrl: string;
  /** Of the vault, 32 random bytes in base64. It is kept in memory alone. */
  readonly masterKey: string;
  readonly deployment: {
    readonly id: string;
    readonly name: string;
    readonly revisionId: string;
    /** 32 random bytes in base64url, others for each instance: whoever has it speaks as its gateway and its runner. */
    readonly gatewayToken: string;
    /**
     * Who decides about callers. `gateway`: the platform, by its keys. `handler`: the authentication handler of the configuration,
     * which must have one.
     */
    readonly access: 'gateway' | 'handler';
    /** The path below which clients reach it, which the gateway removes: `/d/…`. */
    readonly mountPrefix?: string;
    /** Where its workers send their runs, without a key; absent: nowhere. */
    readonly tracesUrl?: string | undefined;
  };
};

/** Fields of requests. The gateway removes all of them from what clients send; names in lower case. */
export const AGENT_FIELDS = {
  /** The gateway token, on requests of clients. */
  gateway: 'x-sallyport-gateway-token',
  /** The same token, on requests of the runner: the gateway never sends it, so that no client can reach what it opens. */
  control: 'x-sallyport-control-token',
  /** On requests of clients that the platform has let in: who that is, and the id of the key. */
  caller: 'x-sallyport-caller',
  key: 'x-sallyport-caller-key',
} as const;

/**
 * `POST` with the control token: the server claims no run any more, and a SIGTERM waits for none. 202 as soon as that has begun; it may
 * be sent again. Requests that arrive are still served: some may be on their way.
 */
export const DRAIN_PATH = '/internal/drain';

/** `GET` with the control token. With `check_db=1` it asks the database too, wherever the configuration has put `/ok`. */
export const STATUS_PATH = '/internal/status';

/** What still runs, without the request that asks. */
export type AgentStatus = {
  readonly draining: boolean;
  /** Whose response is not complete, streams among them. */
  readonly requests: number;
  readonly streams: number;
  /** That this process executes. */
  readonly runs: number;
};
