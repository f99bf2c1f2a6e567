// A module: one part of the platform in a folder of its own, which `modules.ts` lists. What surrounds it (access, audit,
// tenants, documents, jobs, start and drain) is the same for all modules, and works with what is declared here.
import type { Log } from '../base/log.ts';
import type { Admission } from './api/shares/admission.ts';
import type { Info } from './api/contract/info.ts';
import type { Meters } from './api/metrics.ts';
import type { Route } from './api/route.ts';
import type { PlatformConfig } from './config.ts';
import type { Store } from './store/database.ts';
import type { Job, SendJob } from './store/job.ts';
import type { Notifications } from './store/postgres/notifications.ts';
import type { Vault } from './vault/vault.ts';

export type Module = {
  /** That of its folder. */
  readonly name: string;
  /**
   * With their aliases and prefixes. Callers of a kind of its own need no declaration: a route carries its access, which
   * the module may bring.
   */
  routes?(wiring: Wiring): readonly Route[];
  /** What clients learn of it from `/info`. */
  info?(config: PlatformConfig): Info;
  /** A job runs in the processes that work, and may be sent by all. */
  readonly jobs?: readonly Job[];
  /** Starts what runs as long as the process, once jobs can be sent, and before jobs run and requests are accepted. */
  start?(context: StartContext): Promise<RunningPart | undefined>;
};

/** What routes are made with. */
export type Wiring = {
  readonly config: PlatformConfig;
  /** Seals values of tenants. The files that open them are listed in a test. */
  readonly vault: Vault;
  /** Part of the transaction of the caller: the job exists once that commits. */
  readonly send: SendJob;
  /** Of all processes of the database; sent by `notify`, within a transaction. */
  readonly notifications: Pick<Notifications, 'subscribe'>;
};

export type StartContext = Wiring & {
  /** Of connections apart from those of requests: its statements may take minutes. */
  readonly store: Store;
  readonly log: Log;
  /** Of a process that serves: for listeners besides that of the API. */
  readonly admission?: Admission | undefined;
  /** Where metrics are configured. */
  readonly meters?: Meters | undefined;
  /** The command of this program, which its own subcommands are appended to. */
  readonly program: readonly string[];
  /** Requests are served by this process, or jobs and other background work run in it, or both. */
  readonly roles: Roles;
  /** Aborts when the process begins to drain. */
  readonly signal: AbortSignal;
};

export type Roles = { readonly serves: boolean; readonly works: boolean };

export type RunningPart = {
  /** Called when the process begins to drain, while requests are still served: what nobody else goes on with ends here. */
  drain?(): Promise<void>;
  /** Called after the requests and the jobs of this process have ended. */
  close(): Promise<void>;
};
