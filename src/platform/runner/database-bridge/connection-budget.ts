// How many connections to the database server the deployments have, each for itself and all together: the server has a fixed number, and
// the last ones are for those that have few. Pure.

export type ConnectionBudget = {
  readonly perDeployment: number;
  /** `own`: those that the deployment has. Undefined: no more. */
  take(own: number): { release(): void } | undefined;
  readonly used: number;
};

/** A deployment that has fewer gets one as long as there is any. */
const FEW = 4;
/** Of all, for deployments that have more. */
const SHARED = 0.75;

export function createConnectionBudget(total: number, perDeployment: number): ConnectionBudget {
  let used = 0;
  return {
    perDeployment,
    get used() {
      return used;
    },
    take(own) {
      if (own >= perDeployment || used >= (own < FEW ? total : total * SHARED)) return undefined;
      used += 1;
      let isTaken = true;
      return {
        release() {
          if (isTaken) used -= 1;
          isTaken = false;
        },
      };
    },
  };
}
