// The masks of one policy: compiled when first needed, and kept up to a number of bytes. Hosts can have as many sets of
// values as a tenant likes, each with most of the values of the policy.
import { type Steps, finish, finishInSlices } from '../../base/steps.ts';
import { type Mask, compileMaskInSteps } from './mask.ts';
import { buildAutomaton, isPrepared } from './needle-automaton.ts';
import { MAX_HEAD_SEARCH_BYTES, MAX_SEARCHED_BYTES } from './needle-set.ts';

/** With what the policy itself keeps, 16 MiB. */
const MAX_BYTES = 12_582_912;
/** Compiled at once, in a few milliseconds. More is compiled in slices, and the request waits for it. */
const MAX_CHARS_AT_ONCE = 4_096;
/** A buffer, besides its bytes. */
const NEEDLE_OVERHEAD_BYTES = 128;
/** Of an automaton, which is built when a text resembles a needle. */
const BYTES_A_SYMBOL = 25;

type Sized = { readonly length: number };
type Kept = { readonly masks: WeakMap<object, Mask>; readonly key: WeakRef<object>; readonly bytes: number };

export class MaskCache {
  readonly #forHeads = new WeakMap<object, Mask>();
  readonly #forBodies = new WeakMap<object, Mask>();
  /** Oldest first. */
  readonly #kept: Kept[] = [];
  #bytes = 0;
  /** One at a time, so that the work of one tenant takes its turn. */
  #last: Promise<unknown> = Promise.resolve();

  /** The bytes of all masks that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `values` must be the same array each time. A promise if compiling takes long. */
  of<T extends Sized>(
    values: readonly T[],
    searchesBodies: boolean,
    textOf: (value: T) => string,
  ): Mask | Promise<Mask> {
    const masks = searchesBodies ? this.#forBodies : this.#forHeads;
    let known = masks.get(values);
    if (known && (!searchesBodies || isReady(known))) return known;
    const compile = (): Steps<Mask> => compileMaskInSteps(values.map(textOf), searchesBodies);
    if (!known && isSmall(values)) known = this.#keep(masks, values, finish(compile()));
    if (known && (!searchesBodies || isReady(known))) return known;
    return this.#inTurn(async () => {
      const mask = known ?? masks.get(values) ?? this.#keep(masks, values, await finishInSlices(compile()));
      if (searchesBodies && !isReady(mask)) await finishInSlices(buildAutomaton(mask));
      return mask;
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** The newest stays, whatever its size. */
  #keep(masks: WeakMap<object, Mask>, key: object, mask: Mask): Mask {
    const bytes = sizeOf(mask);
    masks.set(key, mask);
    this.#kept.push({ masks, key: new WeakRef(key), bytes });
    this.#bytes += bytes;
    while (this.#bytes > MAX_BYTES && this.#kept.length > 1) {
      const oldest = this.#kept.shift() as Kept;
      this.#bytes -= oldest.bytes;
      const gone = oldest.key.deref();
      if (gone) oldest.masks.delete(gone);
    }
    return mask;
  }
}

function isSmall(values: readonly Sized[]): boolean {
  return values.reduce((sum, { length }) => sum + length, 0) <= MAX_CHARS_AT_ONCE;
}

/** Bodies are searched at the speed of the network: what they need is built before. A small automaton takes no time. */
function isReady(mask: Mask): boolean {
  return mask.bytes <= MAX_HEAD_SEARCH_BYTES || mask.bytes > MAX_SEARCHED_BYTES || isPrepared(mask);
}

function sizeOf({ needles, beginnings, prefixes, filter, bytes }: Mask): number {
  const tables = beginnings.bytes + filter.length + (prefixes?.bytes ?? 0);
  if (needles.length === 0) return tables;
  return tables + needles.length * NEEDLE_OVERHEAD_BYTES + bytes * (1 + BYTES_A_SYMBOL);
}
