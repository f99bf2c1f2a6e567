// How much a test run does: `npm test` or all of it (`npm run test:all`, which sets SALLYPORT_TEST=all).

/** True where the run takes the full corpora and counts. */
export const isFullRun: boolean = process.env['SALLYPORT_TEST'] === 'all';

/** The seed of `npm test`: a property that fails there is no accident of the day. */
export const FIXED_SEED = 20_261_122;

/** How often a property is tried: `count` in the full run, a tenth of it in `npm test`. */
export function runs(count: number, inFirstRun: number = Math.ceil(count / 10)): number {
  return isFullRun ? count : inFirstRun;
}

/** Within one test: every `nth` row in `npm test`, beginning with row `first`, and all of them in the full run. */
export function sample<Row>(nth: number, rows: readonly Row[], first = 0): readonly Row[] {
  return isFullRun ? rows : rows.filter((_, at) => at % nth === first % nth);
}

/**
 * Rows that cost much and differ little: every `nth` runs in each test run, the others have the tag `long`.
 *
 *   everyNth(3, rows, (some, options) => it.each(some)('$id', options, async (row) => …));
 */
export function everyNth<const Row>(
  nth: number,
  rows: readonly Row[],
  declare: (some: readonly Row[], options: { readonly tags: string[] }) => void,
): void {
  declare(
    rows.filter((_, at) => at % nth === 0),
    { tags: [] },
  );
  declare(
    rows.filter((_, at) => at % nth !== 0),
    { tags: ['long'] },
  );
}
