// The types of the library, which the package publishes as they are (`dist/library.d.ts`): they name nothing of other files.

export type SidecarOptions = {
  /** Rules and callbacks, as in a proxy_config file. Without it everything is tunnelled. */
  readonly proxyConfig?: object;
  /** Workspace secrets by name. */
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * Settings, as in a configuration file: `listen` is by default a free port of loopback, `admin.listen` is `off`. Those that name
   * files of rules, secrets, state or CA are rejected, because a sidecar in this process has no state.
   */
  readonly settings?: object;
  /** By default a new one, in memory only. The texts are PEM. */
  readonly ca?: { readonly certificatePem: string; readonly privateKeyPem: string };
  /** Receives each line of the log, records of exchanges among them. By default nothing is logged. */
  readonly onLog?: (line: string) => void;
};

export type RunningSidecar = AsyncDisposable & {
  /** `http://127.0.0.1:PORT` */
  readonly proxyUrl: string;
  /** Undefined unless `settings.admin.listen` is an address. */
  readonly adminUrl: string | undefined;
  /** Of the admin API. */
  readonly adminToken: string | undefined;
  /** The CA certificate that clients must trust. */
  readonly caPem: string;
  /** Variables for the environment of a client, to set over those of this process. They name files that `close` removes. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Replaces rules and secrets as a whole, for requests that begin afterwards. Throws an Error that lists what is wrong; then
   * nothing has changed. After `close` it throws too.
   */
  apply(proxyConfig: object, secrets?: Readonly<Record<string, string>>): void;
  /** Ends within `timeouts.drain_ms`, by default a second. */
  close(): Promise<void>;
};
