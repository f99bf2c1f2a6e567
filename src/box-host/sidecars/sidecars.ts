// The sidecars of this machine: one for each place (a workspace and a number), started with its first box and ended with its
// last. One that ends by itself is started again, after a pause that grows while it fails.
import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { BoxError } from '../box-error.ts';
import type { Placement } from '../box-store.ts';
import type { RecordBook } from './record-book.ts';
import { SidecarProcess, type SidecarProgram } from './sidecar-process.ts';

export type SidecarsOptions = {
  /** Of the box host. */
  readonly directory: string;
  readonly program: SidecarProgram;
  readonly records: RecordBook;
  readonly log: Log;
  /** The files of a place go with its last box: its CA and its tokens are not needed again. */
  readonly removesFiles?: boolean;
  /** A sidecar ended by itself: its policies are lost. */
  onLost(): void;
};

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** One that has run for as long does not fail at each start. */
const STABLE_MS = 30_000;

export class Sidecars {
  readonly #options: SidecarsOptions;
  readonly #supervised = new Map<string, Supervised>();
  /** A place has one directory: the next sidecar there starts when the one before has ended. */
  readonly #ending = new Map<string, Promise<void>>();

  constructor(options: SidecarsOptions) {
    this.#options = options;
  }

  /** The running sidecar of the place. Rejects with a BoxError if it does not start. */
  async acquire(placed: Placement, boxId: string): Promise<SidecarProcess> {
    const key = keyOf(placed);
    const found = this.#supervised.get(key) ?? new Supervised(key, this.#options, this.#ending.get(key));
    this.#supervised.set(key, found);
    found.boxes.add(boxId);
    return found.running();
  }

  /** The box does not run any more; its sidecar ends with the last of its boxes. */
  async release(placed: Placement, boxId: string): Promise<void> {
    const key = keyOf(placed);
    const found = this.#supervised.get(key);
    if (found === undefined) return;
    found.boxes.delete(boxId);
    if (found.boxes.size > 0) return;
    this.#supervised.delete(key);
    const ending = this.#end(found, key).finally(() => {
      if (this.#ending.get(key) === ending) this.#ending.delete(key);
    });
    this.#ending.set(key, ending);
    await ending;
  }

  /** Removes the files of a place that no box has any more. */
  async forget(placed: Placement): Promise<void> {
    const key = keyOf(placed);
    if (!this.#supervised.has(key)) await this.#removeFiles(key);
  }

  /** The next sidecar of the place waits for it. */
  async #end(sidecar: Supervised, key: string): Promise<void> {
    await sidecar.end();
    if (this.#options.removesFiles === true) await this.#removeFiles(key);
  }

  #removeFiles(key: string): Promise<void> {
    return rm(join(this.#options.directory, 'sidecars', key), { recursive: true, force: true });
  }

  /** The process that serves the place now. */
  currentOf(placed: Placement): SidecarProcess | undefined {
    return this.#supervised.get(keyOf(placed))?.current;
  }

  pids(): readonly number[] {
    return [...this.#supervised.values()].flatMap(({ current }) => current?.pid ?? []);
  }

  async close(): Promise<void> {
    const all = [...this.#supervised.values()];
    this.#supervised.clear();
    await Promise.all([...all.map((one) => one.end()), ...this.#ending.values()]);
  }
}

class Supervised {
  readonly boxes = new Set<string>();
  current: SidecarProcess | undefined;
  readonly #key: string;
  readonly #options: SidecarsOptions;
  readonly #end = new AbortController();
  #starting: Promise<SidecarProcess> | undefined;
  #pauseMs = 0;
  readonly #before: Promise<void> | undefined;

  /** `before`: the end of the one before at this place, which has not ended yet. */
  constructor(key: string, options: SidecarsOptions, before: Promise<void> | undefined) {
    this.#key = key;
    this.#options = options;
    this.#before = before;
  }

  async running(): Promise<SidecarProcess> {
    if (this.current) return this.current;
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async end(): Promise<void> {
    this.#end.abort();
    await this.#starting?.catch(() => undefined);
    await this.current?.end();
  }

  async #start(): Promise<SidecarProcess> {
    const { directory, program, records, log } = this.#options;
    await this.#before?.catch(() => undefined);
    // Short: the kernel limits the path of a socket to a hundred bytes.
    const socketPath = join(directory, `s-${randomBytes(6).toString('hex')}`);
    const place = { directory: join(directory, 'sidecars', this.#key), socketPath };
    try {
      const sidecar = await SidecarProcess.start({ program, place, records, log });
      const startedMs = performance.now();
      this.current = sidecar;
      void sidecar.ended.then(() => this.#onEnded(socketPath, startedMs));
      return sidecar;
    } catch (error) {
      await rm(socketPath, { force: true });
      const reason = error instanceof Error ? error.message : 'unknown';
      log.error({ reason }, 'a sidecar does not start');
      throw new BoxError('failed', 'The sidecar of the box does not start: see the log of the box host');
    }
  }

  async #onEnded(socketPath: string, startedMs: number): Promise<void> {
    this.current = undefined;
    await rm(socketPath, { force: true });
    if (this.#end.signal.aborted) return;
    const { log, onLost } = this.#options;
    const wasStable = performance.now() - startedMs > STABLE_MS;
    this.#pauseMs = wasStable ? 0 : Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, 2 * this.#pauseMs));
    log.warn(
      { boxes: this.boxes.size },
      'a sidecar ended by itself: it is started again, and its policies are pushed again',
    );
    onLost();
    await this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted && this.current === undefined) {
      await delay(this.#pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.running();
        this.#options.onLost();
      } catch {
        this.#pauseMs = Math.min(MAX_PAUSE_MS, 2 * Math.max(MIN_PAUSE_MS, this.#pauseMs));
      }
    }
  }
}

/** A name of the directory that does not grow: part of it is in no path of a socket, but all of it in messages. */
function keyOf({ workspace_id, slot }: Placement): string {
  return createHash('sha256').update(`${workspace_id}/${slot}`).digest('hex').slice(0, 32);
}
