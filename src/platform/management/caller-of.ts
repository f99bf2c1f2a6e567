// The caller of a route that only somebody known may call.
import type { Call } from '../api/route.ts';
import type { Caller } from '../identity/caller.ts';

export function callerOf({ caller }: Call): Caller {
  if (caller === undefined) throw new Error('a route of management was asked by nobody');
  return caller;
}
