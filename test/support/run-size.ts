// How much a test run does: `npm test` or all of it (`npm run test:all`, which sets SALLYPORT_TEST=all).

/** True where the run takes the full corpora and counts. */
export const isFullRun: boolean = process.env['SALLYPORT_TEST'] === 'all';

/** The seed of `npm test`: a property that fails there is no accident of the day. */
export const FIXED_SEED = 20_261_122;

/** How often a property is tried: `count` in the full run, a tenth of it in `npm test`. */
export function runs(count: number, inFirstRun: number = Math.ceil(count / 10)): number {
  return isFullRun ? count : inFirstRun;
}
