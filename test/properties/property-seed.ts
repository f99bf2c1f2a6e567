// The seed of a property: another one each time, or the one that is to be replayed.

/** PROPERTY_SEED where it is set. */
export function propertySeed(): number {
  const given = process.env['PROPERTY_SEED'];
  if (given === undefined) return (Math.random() * 2 ** 31) | 0;
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error('PROPERTY_SEED should be a whole number');
  return seed;
}
