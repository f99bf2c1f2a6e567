// Keeps the database of one deployment to its size. Above the limit its tables take no new rows, so that rows can still be deleted; at half
// as much again its connections are closed, whatever its code does. Below the limit everything is as before.
import type { Secret } from '../../../base/secret.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { type Client, type Connection, connectOnce } from '../../store/database.ts';
import type { StartTurns } from '../fleet/start-turns.ts';
import { allowInserts, isRefusingInserts, refuseInserts } from './insert-refusal.ts';
import { type ReclaimedRows, reclaimSpace } from './space-reclaim.ts';

export type SizeState = 'open' | 'full' | 'closed';

/** Of the limit, from which on connections are closed. */
export const CLOSED_FACTOR = 1.5;
/** Of the limit, to which a full database must shrink, so that it is not full again at once. */
const OPEN_FACTOR = 0.9;

export function decideSize(bytes: number, maxBytes: number, before: SizeState): SizeState {
  if (bytes > CLOSED_FACTOR * maxBytes) return 'closed';
  if (bytes > maxBytes) return 'full';
  return before !== 'open' && bytes > OPEN_FACTOR * maxBytes ? 'full' : 'open';
}

export type SizeLimitOptions = {
  readonly maxBytes: number;
  /** Of the server. */
  readonly owner: Connection;
  /** As whom the deployment connects. What is done as that role, code of the deployment could do as well. */
  readonly login: { readonly database: string; readonly user: string; readonly password: Secret };
  /** Of all databases of this machine. */
  readonly turns: StartTurns;
  /** Cuts the connections of the deployment, and refuses others with this reason until it is undefined again. */
  refuseAll(reason: string | undefined): void;
  readonly log: Pick<Log, 'warn' | 'info'>;
};

export type SizeLimit = {
  /** The database has this size now. What must be done for it is done in the background. */
  take(bytes: number): void;
  /** What is being done is not waited for: it ends by itself. */
  close(): void;
};

const MIB = 1024 ** 2;
/** Of the limit: what a table may have that still takes rows. */
const SMALL_SHARE = 1 / 1024;
const STATEMENT_MS = 10_000;
const LOCK_MS = 2_000;

export function createSizeLimit(options: SizeLimitOptions): SizeLimit {
  return new DatabaseLimit(options);
}

class DatabaseLimit implements SizeLimit {
  readonly #options: SizeLimitOptions;
  readonly #closing = new AbortController();
  readonly #reclaimed: ReclaimedRows = new Map();
  /** Undefined: what an earlier process has left is not known yet. */
  #state: SizeState | undefined;
  #isWorking = false;
  #isReported = false;

  constructor(options: SizeLimitOptions) {
    this.#options = options;
  }

  take(bytes: number): void {
    const { maxBytes, refuseAll, turns } = this.#options;
    const isClosed = decideSize(bytes, maxBytes, 'open') === 'closed';
    refuseAll(isClosed ? describeClosed(bytes, maxBytes) : undefined);
    if (this.#state === 'open' && decideSize(bytes, maxBytes, 'open') === 'open') return;
    if (this.#isWorking || this.#closing.signal.aborted) return;
    this.#isWorking = true;
    turns
      .run(() => this.#enforce(bytes), this.#closing.signal)
      .then(() => void (this.#isReported = false))
      .catch((error: unknown) => this.#report(error))
      .finally(() => (this.#isWorking = false));
  }

  close(): void {
    this.#closing.abort(new Error('the database of a deployment is closed'));
  }

  async #enforce(bytes: number): Promise<void> {
    await this.#asRole(async (client) => {
      const before = this.#state ?? ((await isRefusingInserts(client)) ? 'full' : 'open');
      const next = decideSize(bytes, this.#options.maxBytes, before);
      if (next === 'open') await this.#open(client, before);
      else await this.#fill(client, before, next);
    });
  }

  async #open(client: Client, before: SizeState): Promise<void> {
    if (before !== 'open') await allowInserts(client);
    if (before !== 'open') this.#options.log.info(this.#of, 'the database of a deployment takes rows again');
    this.#state = 'open';
  }

  async #fill(client: Client, before: SizeState, next: SizeState): Promise<void> {
    const { maxBytes, log } = this.#options;
    // Also where it fails: the next look is to continue.
    this.#state = next;
    if (before === 'open')
      log.warn({ ...this.#of, maxBytes }, 'the database of a deployment is full: it takes no new rows');
    const minBytes = Math.max(MIB, SMALL_SHARE * maxBytes);
    await refuseInserts(client, { ...describeFull(maxBytes), minBytes });
    await reclaimSpace(client, minBytes, this.#reclaimed);
  }

  get #of() {
    return { database: this.#options.login.database };
  }

  /** Once until it succeeds: locks of the deployment may be in the way for long. */
  #report(error: unknown): void {
    if (this.#isReported || this.#closing.signal.aborted) return;
    this.#isReported = true;
    this.#options.log.warn(
      { ...describeBug(error), ...this.#of },
      'the limit of the database of a deployment is not complete: it is tried again',
    );
  }

  /** With settings of its own: the role may have others. */
  async #asRole(work: (client: Client) => Promise<void>): Promise<void> {
    const { owner, login } = this.#options;
    const { database, user, password } = login;
    const connection = { ...owner, application_name: 'sallyport runner', database, user };
    await connectOnce({ ...connection, password: password.reveal() }, async (client) => {
      await client.query(`set search_path = pg_catalog, pg_temp; set statement_timeout = ${STATEMENT_MS};
        set lock_timeout = ${LOCK_MS}; set default_transaction_read_only = off`);
      await work(client);
    });
  }
}

function describeFull(maxBytes: number): { readonly message: string; readonly hint: string } {
  return {
    message: `the database of this deployment has more than the ${mebibytes(maxBytes)} MiB of runner.limits.database_bytes and takes no new rows: delete some, for example threads that nobody needs, or ask its operator to raise the limit`,
    hint: 'It takes rows again within a minute after enough of them were deleted.',
  };
}

function describeClosed(bytes: number, maxBytes: number): string {
  return `the database of this deployment has ${mebibytes(bytes)} MiB, more than ${CLOSED_FACTOR} times the ${mebibytes(maxBytes)} MiB of runner.limits.database_bytes: its operator can raise that, or delete the deployment`;
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / MIB);
}
