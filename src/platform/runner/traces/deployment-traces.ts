// The runs of one deployment on their way to the platform: its token, which is in this process alone, and the services of its agent servers.
import type { Log } from '../../../base/log.ts';
import type { Secret } from '../../../base/secret.ts';
import type { WorkloadService } from '../../../workload/workload.ts';
import type { Database } from '../../store/database.ts';
import { issueTraceToken } from '../../traces/contract.ts';
import { createTraceService } from './trace-relay.ts';
import { type Sending, sendToPlatform, type TraceResponse } from './trace-sender.ts';

export type TracesOptions = {
  readonly db: Database;
  /** Undefined: deployments of this runner do not trace, because they share a network with others. */
  readonly platformUrl: string | undefined;
  readonly owner: { readonly workspaceId: string; readonly deploymentId: string };
  readonly log: Log;
};

/** How long a rejected token is not shown again: whoever shows wrong ones for long is kept waiting, and so would be others. */
const REJECTED_MS = 60_000;

export class DeploymentTraces {
  readonly #options: TracesOptions;
  #token: Secret | undefined;
  #rejectedMs = -Infinity;

  constructor(options: TracesOptions) {
    this.#options = options;
  }

  /** Before its first agent server. Rejects when the database does not respond. */
  async open(): Promise<void> {
    const { db, platformUrl, owner } = this.#options;
    if (platformUrl !== undefined) this.#token ??= await issueTraceToken(db, owner);
  }

  /** For the log of a revision, where its runs are not traced. */
  get note(): string | undefined {
    return this.#options.platformUrl === undefined ? NOT_TRACED : undefined;
  }

  /** Of one agent server; undefined: it does not trace. */
  createService(): WorkloadService | undefined {
    const { platformUrl, log } = this.#options;
    const token = this.#token;
    if (platformUrl === undefined || token === undefined) return undefined;
    return createTraceService({ log, send: (sending) => this.#send(platformUrl, token, sending) });
  }

  async #send(platformUrl: string, token: Secret, sending: Sending): Promise<TraceResponse> {
    if (performance.now() - this.#rejectedMs < REJECTED_MS) return REJECTED;
    const response = await sendToPlatform(platformUrl, token, sending);
    if (response.status !== 401) return response;
    this.#rejectedMs = performance.now();
    return REJECTED;
  }
}

const NOT_TRACED =
  'its runs are not traced: that needs a network namespace of its own, which runner.isolation bubblewrap gives, and user and none do not';

const REJECTED: TraceResponse = {
  status: 401,
  fields: { 'Content-Type': 'application/json' },
  body: Buffer.from('{"detail":"The deployment is being deleted, or another runner has it"}\n'),
};
