// Counts that are always on, in arrays of a fixed size: counting allocates nothing and costs an addition. Names that somebody
// else chooses are bounded: those beyond the limit share one count.

/** The label of the names beyond the limit. */
export const OTHER = 'other';

const MAX_LABEL_CHARS = 128;

/** As a name is written: two names must not become one series in the output. */
export function labelOf(name: string): string {
  return name.slice(0, MAX_LABEL_CHARS).toWellFormed();
}

/** A number for each name, in the order in which they come. A name keeps its number, so that its counts never begin again. */
class BoundedNames {
  readonly labels: string[] = [OTHER];
  readonly #numbers: Map<string, number> = new Map([[OTHER, 0]]);
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  numberOf(name: string): number {
    return this.#numbers.get(name) ?? this.#add(name);
  }

  #add(name: string): number {
    const label = labelOf(name);
    const known = this.#numbers.get(label);
    if (known !== undefined) return known;
    if (this.labels.length > this.#max) return 0;
    this.#numbers.set(label, this.labels.length);
    return this.labels.push(label) - 1;
  }
}

/** The counts of a name, one of each column. */
export type NamedRow = { readonly name: string; readonly values: readonly number[] };

/** Counts in columns for each of at most `max` names. */
export class NamedCounts {
  readonly #names: BoundedNames;
  readonly #columns: number;
  readonly #values: Float64Array;

  constructor(max: number, columns: number) {
    this.#names = new BoundedNames(max);
    this.#columns = columns;
    this.#values = new Float64Array((max + 1) * columns);
  }

  add(name: string, column: number, amount: number = 1): void {
    const at = this.#names.numberOf(name) * this.#columns + column;
    this.#values[at] = (this.#values[at] ?? 0) + amount;
  }

  /** Of the names that have been counted. */
  rows(): readonly NamedRow[] {
    const rows = this.#names.labels.map((name, number) => {
      const start = number * this.#columns;
      return { name, values: [...this.#values.subarray(start, start + this.#columns)] };
    });
    return rows.filter(({ values }) => values.some((value) => value !== 0));
  }
}

/** A histogram as it is read: `buckets` has how many were at most as long as each bound. */
export type ReadDurations = {
  readonly bounds: readonly number[];
  readonly buckets: readonly number[];
  readonly count: number;
  readonly sum: number;
};

/** How long something took, in buckets with fixed upper bounds in seconds. */
export class Durations {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  add(seconds: number): void {
    const at = bucketOf(this.#bounds, seconds);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
  }

  read(): ReadDurations {
    return readDurations(this.#bounds, this.#counts, this.#sum);
  }
}

/** The same for each of at most `max` names. */
export class NamedDurations {
  readonly #bounds: readonly number[];
  readonly #counts: NamedCounts;

  constructor(max: number, bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new NamedCounts(max, bounds.length + 2);
  }

  add(name: string, seconds: number): void {
    this.#counts.add(name, bucketOf(this.#bounds, seconds));
    this.#counts.add(name, this.#bounds.length + 1, seconds);
  }

  rows(): readonly (ReadDurations & { readonly name: string })[] {
    return this.#counts.rows().map(({ name, values }) => ({
      name,
      ...readDurations(this.#bounds, values.slice(0, -1), values.at(-1) ?? 0),
    }));
  }
}

/** The first bucket that it is in; the last one has no bound. */
function bucketOf(bounds: readonly number[], seconds: number): number {
  let at = 0;
  while (at < bounds.length && seconds > (bounds[at] ?? 0)) at += 1;
  return at;
}

function readDurations(bounds: readonly number[], counts: ArrayLike<number>, sum: number): ReadDurations {
  let count = 0;
  const buckets = Array.from(counts, (value) => (count += value));
  return { bounds, buckets: buckets.slice(0, bounds.length), count, sum };
}
