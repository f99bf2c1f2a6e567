// Gives each box a user of the host of its own, who has no account and owns nothing else. All box hosts of the machine keep one
// registry of them: a user of two boxes could end the processes of both and read the files of both.
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { InputError } from '../../base/input-error.ts';

/** Above those of accounts. What `/etc/subuid` gives to containers is left out. */
export const defaultUserRange: UserRange = { first: 200_000, count: 60_000 };

export type UserRange = { readonly first: number; readonly count: number };

export type HostUsersOptions = {
  readonly range: UserRange;
  /** Of this box host: names it in the registry. */
  readonly directory: string;
  /** The users of boxes that have files, which own them. */
  readonly taken: readonly number[];
  /** The directory of the registry; by default that of the machine. */
  readonly registry?: string | undefined;
};

/** The second where the first cannot be written. */
const REGISTRIES: readonly string[] = ['/var/lib/sallyport-boxes', '/run/sallyport-host-users'];
const BUSY_MS = 5_000;

export class HostUsers implements Disposable {
  readonly #range: UserRange;
  readonly #owner: string;
  readonly #database: DatabaseSync;
  readonly #foreign: readonly UserRange[];

  private constructor({ range, directory }: HostUsersOptions, database: DatabaseSync) {
    this.#range = range;
    this.#owner = directory;
    this.#database = database;
    this.#foreign = [...readRanges('/etc/subuid', 1), ...readRanges('/etc/passwd', 2)];
  }

  /** Throws an InputError if a user of these boxes is that of a box of another directory, of which this one may be a copy. */
  static async open(options: HostUsersOptions): Promise<HostUsers> {
    const { DatabaseSync } = await import('node:sqlite');
    const place = options.registry ?? REGISTRIES.find(canHold);
    if (place === undefined) throw new InputError(`none of these can be written: ${REGISTRIES.join(', ')}`);
    mkdirSync(place, { recursive: true, mode: 0o700 });
    const database = new DatabaseSync(join(place, 'users'), { timeout: BUSY_MS });
    try {
      // A commit that a power failure loses is made again from the records of the boxes.
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
      database.exec('CREATE TABLE IF NOT EXISTS users (uid INTEGER PRIMARY KEY, owner TEXT NOT NULL)');
      const users = new HostUsers(options, database);
      users.#reconcile(options.taken);
      return users;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** The lowest that is free: for every box host, and of every process. */
  take(): number {
    const { first, count } = this.#range;
    return this.#transact(() => {
      const owners = this.#rows();
      const running = new Set(usersOfProcesses());
      const isForeign = (uid: number): boolean => this.#foreign.some((one) => isIn(one, uid));
      const isFree = (uid: number): boolean => !owners.has(uid) && !running.has(uid) && !isForeign(uid);
      // Last: the directory of another box host may be on a disk that is not mounted now.
      const isLeft = (uid: number): boolean => !running.has(uid) && !existsSync(owners.get(uid) ?? '/');
      for (const isUsable of [isFree, isLeft])
        for (let uid = first; uid < first + count; uid += 1) {
          if (!isUsable(uid)) continue;
          this.#insert(uid);
          return uid;
        }
      throw new Error(`all ${count} host users from ${first} on belong to boxes or to accounts`);
    });
  }

  release(uid: number): void {
    this.#database.prepare('DELETE FROM users WHERE uid = ? AND owner = ?').run(uid, this.#owner);
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  /** What a killed box host took for a box that it had not made yet is free again. */
  #reconcile(taken: readonly number[]): void {
    this.#transact(() => {
      const owners = this.#rows();
      for (const [uid, owner] of owners) if (owner === this.#owner && !taken.includes(uid)) this.release(uid);
      for (const uid of taken) {
        const other = owners.get(uid) ?? this.#owner;
        if (other !== this.#owner && existsSync(other))
          throw new InputError(
            `${this.#owner}: the host user ${uid} of a box is that of a box of ${other}. Remove the box there, or one of the directories`,
          );
        this.#insert(uid);
      }
    });
  }

  /** Users with their owners. */
  #rows(): ReadonlyMap<number, string> {
    const rows = this.#database.prepare('SELECT uid, owner FROM users').all();
    return new Map(rows.map(({ uid, owner }) => [Number(uid), String(owner)]));
  }

  #insert(uid: number): void {
    this.#database.prepare('INSERT OR REPLACE INTO users (uid, owner) VALUES (?, ?)').run(uid, this.#owner);
  }

  #transact<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}

function canHold(directory: string): boolean {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return true;
  } catch {
    return false;
  }
}

function isIn({ first, count }: UserRange, uid: number): boolean {
  return uid >= first && uid < first + count;
}

/** `name:first:count` of /etc/subuid; one user in the column of /etc/passwd. */
function readRanges(file: string, column: number): readonly UserRange[] {
  const isPasswd = column === 2;
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.flatMap((line) => {
      const fields = line.split(':');
      const first = Number(fields[column] || Number.NaN);
      const count = isPasswd ? 1 : Number(fields[2]);
      return Number.isSafeInteger(first) && Number.isSafeInteger(count) ? [{ first, count }] : [];
    });
  } catch {
    return [];
  }
}

function usersOfProcesses(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    return statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid ?? [];
  });
}
