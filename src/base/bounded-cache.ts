// A bounded map: the least recently used entries are evicted first, and an expired entry is never returned.
// The adapter of lru-cache.
import { LRUCache } from 'lru-cache';

type Entry<V> = { readonly value: V; readonly deadline: number };

export class BoundedCache<V extends {}> {
  // The deadline is stored beside the value, not in lru-cache, which reads its clock at most once a millisecond, never
  // expires an entry written at time 0, and returns an entry of exactly its maximum age.
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #ttlMs: number;
  readonly #now: () => number;
  #clears = 0;

  /**
   * At most `max` entries and, with `bytes`, at most `bytes.max` in all, as measured by `bytes.of` (above 0); a single
   * value above that is not stored. `now` must be monotonic, in milliseconds; without `ttlMs` an entry stays until it is
   * evicted. `onEvict` is called with each value that leaves, whatever the cause.
   */
  constructor(options: {
    max: number;
    bytes?: { readonly max: number; of(value: V): number };
    ttlMs?: number;
    now?: () => number;
    onEvict?: (value: V) => void;
  }) {
    const { max, bytes, onEvict } = options;
    const bound = bytes && { maxSize: bytes.max, sizeCalculation: ({ value }: Entry<V>) => bytes.of(value) };
    const reported = onEvict && { dispose: ({ value }: Entry<V>) => onEvict(value) };
    this.#entries = new LRUCache({ max, ...bound, ...reported });
    this.#ttlMs = options.ttlMs ?? Number.POSITIVE_INFINITY;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The value if it is stored and not expired; the entry then counts as used. */
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

  /** How often the cache was cleared: work that began in an earlier generation has an outdated result. */
  get generation(): number {
    return this.#clears;
  }

  /** Entries stored, expired ones included until they are read or evicted. */
  get size(): number {
    return this.#entries.size;
  }

  /** Keys stored, most recently used first. */
  keys(): Iterable<string> {
    return this.#entries.keys();
  }
}
