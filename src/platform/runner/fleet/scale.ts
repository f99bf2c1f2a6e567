// How many agent servers a deployment has, between the smallest and the largest number that its owner allows. Pure: by what is in
// flight each time they are looked at.

export type ScaleRange = { readonly min: number; readonly max: number };

/** In flight in each of them: it is busy. */
const BUSY_REQUESTS = 16;
/** Looks in a row at which all are busy. */
const BUSY_LOOKS = 2;
const IDLE_MS = 5 * 60_000;

export type Scale = {
  /** `inFlight`: of each one that is ready. Returns how many there should be. */
  look(inFlight: readonly number[], range: ScaleRange, nowMs: number): number;
};

export function createScale(): Scale {
  let wanted = 0;
  let busyLooks = 0;
  /** Since when one fewer would have been enough. */
  let idleSinceMs: number | undefined;
  return {
    look(inFlight, range, nowMs) {
      const all = inFlight.reduce((sum, one) => sum + one, 0);
      const isBusy =
        inFlight.length >= wanted && inFlight.length > 0 && inFlight.every((one) => one >= BUSY_REQUESTS);
      busyLooks = isBusy ? busyLooks + 1 : 0;
      const isIdle = wanted > range.min && all < BUSY_REQUESTS * (wanted - 1) * 0.5;
      idleSinceMs = isIdle ? (idleSinceMs ?? nowMs) : undefined;
      if (busyLooks >= BUSY_LOOKS) {
        wanted += 1;
        busyLooks = 0;
      } else if (idleSinceMs !== undefined && nowMs - idleSinceMs >= IDLE_MS) {
        wanted -= 1;
        idleSinceMs = nowMs;
      }
      wanted = Math.min(Math.max(wanted, range.min), range.max);
      return wanted;
    },
  };
}
