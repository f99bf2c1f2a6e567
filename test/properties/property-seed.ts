// The seed of a property: PROPERTY_SEED where it is set (to replay a failure), another one each time in the full run, and
// the same one in every `npm test`.
import { FIXED_SEED, isFullRun } from '../support/run-size.ts';

/** PROPERTY_SEED where it is set. */
export function propertySeed(): number {
  const given = process.env['PROPERTY_SEED'];
  if (given === undefined) return isFullRun ? (Math.random() * 2 ** 31) | 0 : FIXED_SEED;
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error('PROPERTY_SEED must be a whole number');
  return seed;
}
