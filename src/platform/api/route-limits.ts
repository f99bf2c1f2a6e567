// How many requests of one route run at a time, in all and of one caller. Who finds no place is asked to come back at once:
// a request that waited would hold its body in memory.
import { DomainError } from '../../base/domain-error.ts';

export type RunningLimit = { readonly total: number; readonly perCaller: number };

/** A route, as far as this file reads it; one object is one route. */
type WithLimits = { readonly limits?: { readonly running?: RunningLimit } };

/** Runs `work` within the limits of its route; throws DomainError above them. */
export type LimitRoute = <T>(route: WithLimits, caller: string, work: () => Promise<T>) => Promise<T>;

const RETRY_MS = 1_000;
const TOO_MANY = 'Too many of these requests at the same time: send this one again';

/** The requests of one process are counted. */
export function createRouteLimits(): LimitRoute {
  const running = new Map<WithLimits, string[]>();
  return async (route, caller, work) => {
    const limit = route.limits?.running;
    if (limit === undefined) return work();
    const callers = running.get(route) ?? [];
    running.set(route, callers);
    const own = callers.filter((other) => other === caller).length;
    if (callers.length >= limit.total || own >= limit.perCaller)
      throw new DomainError('too_many', TOO_MANY, RETRY_MS);
    callers.push(caller);
    try {
      return await work();
    } finally {
      callers.splice(callers.indexOf(caller), 1);
    }
  };
}
