// A map with bounds: least recently used entries leave first, and an entry past its time is never handed out.
// The only file that knows lru-cache. It knows nothing of what is stored.
import { LRUCache } from 'lru-cache';

type Entry<V> = { readonly value: V; readonly deadline: number };

export class BoundedCache<V extends {}> {
  // The deadline is kept beside the value, not in lru-cache: its clock is read at most once a millisecond,
  // an entry written at time 0 never expires there, and one at exactly its age still counts as fresh.
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #ttlMs: number;
  readonly #now: () => number;
  #clears = 0;

  /**
   * At most `max` entries and, with `bytes`, at most `bytes.max` in all by the reckoning of `bytes.of` (above 0); a
   * value beyond that alone is not kept. `now` must be monotonic, in milliseconds; without `ttlMs` an entry stays
   * until it is crowded out. `onGone` gets each value that leaves, whatever the cause.
   */
  constructor(options: {
    max: number;
    bytes?: { readonly max: number; of(value: V): number };
    ttlMs?: number;
    now?: () => number;
    onGone?: (value: V) => void;
  }) {
    const { max, bytes, onGone } = options;
    const bound = bytes && { maxSize: bytes.max, sizeCalculation: ({ value }: Entry<V>) => bytes.of(value) };
    const reported = onGone && { dispose: ({ value }: Entry<V>) => onGone(value) };
    this.#entries = new LRUCache({ max, ...bound, ...reported });
    this.#ttlMs = options.ttlMs ?? Number.POSITIVE_INFINITY;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The value if it is there and in time; the entry then counts as used. */
  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#now() < entry.deadline) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  set(key: string, value: V, ttlMs: number = this.#ttlMs): void {
    this.#entries.set(key, { value, deadline: this.#now() + ttlMs });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#clears += 1;
    this.#entries.clear();
  }

  /** How often it was cleared: work that began before the last time can tell that what it brings is of the past. */
  get generation(): number {
    return this.#clears;
  }

  /** Entries held, those past their time included until they are asked for or crowded out. */
  get size(): number {
    return this.#entries.size;
  }

  /** Keys held, most recently used first. */
  keys(): Iterable<string> {
    return this.#entries.keys();
  }
}
