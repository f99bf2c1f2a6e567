// The host users of workloads: each owner has one of its own, also after a restart, because its files belong to that user. Everything on
// this machine that gives out host users keeps one registry of them.
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseWith, z } from '../../base/schema.ts';
import { InputError } from '../../base/input-error.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import { HostUsers, type UserRange } from '../../box-host/bubblewrap/host-users.ts';
import type { WorkloadUser } from '../workload.ts';
import { FIRST_WORKLOAD_USER } from './user-processes.ts';

/** Behind those of boxes. */
export const defaultWorkloadUsers: UserRange = { first: 260_000, count: 60_000 };

export type WorkloadUsersOptions = {
  /** Private to this user. */
  readonly directory: string;
  readonly range?: UserRange | undefined;
  /** See `HostUsersOptions`. */
  readonly registry?: string | undefined;
  /** Of workloads of a process before, of which something is left. */
  readonly taken: readonly number[];
  /** Ends what a user runs. */
  end(user: WorkloadUser): Promise<void>;
  /** Ends that, and removes what the user left on the machine. */
  clear(user: WorkloadUser): Promise<void>;
};

const owners = z.record(z.string(), z.int().min(FIRST_WORKLOAD_USER));

export class WorkloadUsers {
  readonly #file: string;
  readonly #hostUsers: HostUsers;
  readonly #owners: Map<string, number>;
  readonly #options: WorkloadUsersOptions;
  /** How many workloads of owners run, by their users. */
  readonly #running = new Map<number, number>();
  readonly #work = new WorkQueue();

  private constructor(
    options: WorkloadUsersOptions,
    { file, hostUsers, known }: { file: string; hostUsers: HostUsers; known: Map<string, number> },
  ) {
    this.#file = file;
    this.#hostUsers = hostUsers;
    this.#owners = known;
    this.#options = options;
  }

  /** Throws an InputError if a user of ours belongs to somebody else, or the file of them is damaged. */
  static async open(options: WorkloadUsersOptions): Promise<WorkloadUsers> {
    const { directory, range = defaultWorkloadUsers, registry, taken } = options;
    const file = join(directory, 'users.json');
    const known = await readOwners(file);
    const hostUsers = await HostUsers.open({
      ...{ range, directory, registry },
      taken: [...new Set([...known.values(), ...taken])],
    });
    return new WorkloadUsers(options, { file, hostUsers, known });
  }

  get owners(): ReadonlySet<string> {
    return new Set(this.#owners.keys());
  }

  userOf(owner: string): Promise<WorkloadUser> {
    return this.#work.run(async () => {
      const known = this.#owners.get(owner);
      if (known !== undefined) return toUser(known);
      const uid = this.#hostUsers.take();
      this.#owners.set(owner, uid);
      await this.#write().catch((error: unknown) => {
        this.#owners.delete(owner);
        this.#hostUsers.release(uid);
        throw error;
      });
      return toUser(uid);
    });
  }

  /** No workload of the owner runs. If something of its user does not end, nobody else gets it. */
  releaseOwner(owner: string): Promise<void> {
    return this.#work.run(async () => {
      const uid = this.#owners.get(owner);
      if (uid === undefined) return;
      await this.#options.clear(toUser(uid));
      this.#owners.delete(owner);
      await this.#write().catch((error: unknown) => {
        // It is released again later: otherwise nobody would know whose it is.
        this.#owners.set(owner, uid);
        throw error;
      });
      this.#hostUsers.release(uid);
    });
  }

  /** For one workload. */
  take(): WorkloadUser {
    return toUser(this.#hostUsers.take());
  }

  /** As `releaseOwner`, of a user that `take` gave or that was `taken`. */
  async release({ uid }: Pick<WorkloadUser, 'uid'>): Promise<void> {
    await this.#options.clear(toUser(uid));
    this.#hostUsers.release(uid);
  }

  /** Of a workload of a process before: of an owner, or for it alone. */
  async releaseLeft(user: WorkloadUser): Promise<void> {
    if (!this.#isOwned(user)) await this.release(user);
    else if (!this.#running.has(user.uid)) await this.#options.end(user);
  }

  /** A workload of this user begins. Throws a TypeError for a user that belongs to no owner. */
  hold(user: WorkloadUser): Promise<void> {
    return this.#work.run(async () => {
      if (!this.#isOwned(user)) throw new TypeError('user: must be that of an owner of these workloads');
      this.#running.set(user.uid, (this.#running.get(user.uid) ?? 0) + 1);
    });
  }

  /** A workload of this user has ended. What runs after the last one has escaped its workload. */
  letGo(user: WorkloadUser): Promise<void> {
    return this.#work.run(async () => {
      const left = (this.#running.get(user.uid) ?? 0) - 1;
      if (left > 0) this.#running.set(user.uid, left);
      else this.#running.delete(user.uid);
      if (left <= 0) await this.#options.end(user);
    });
  }

  close(): void {
    this.#hostUsers[Symbol.dispose]();
  }

  #isOwned({ uid }: WorkloadUser): boolean {
    return [...this.#owners.values()].includes(uid);
  }

  /** Whole, before or after. */
  async #write(): Promise<void> {
    await writeFile(`${this.#file}.new`, JSON.stringify(Object.fromEntries(this.#owners)), {
      mode: 0o600,
      flush: true,
    });
    await rename(`${this.#file}.new`, this.#file);
  }
}

export function toUser(uid: number): WorkloadUser {
  return { uid, gid: uid };
}

/** A damaged file is not replaced: the users in it own files, which others would get. */
async function readOwners(file: string): Promise<Map<string, number>> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw error;
  });
  const parsed = parseWith(owners, parseText(text));
  if (!parsed.ok)
    throw new InputError(`${file} is damaged: restore it, or remove it with all deployments of this machine`);
  return new Map(Object.entries(parsed.value));
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
