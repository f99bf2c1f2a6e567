// What the sidecar would not do, as a status. The only file that maps one to the other.
import type { Loc } from '../base/schema.ts';
import { type AdminResponse, invalid, refused, retryAfter } from './answer.ts';
import type { Problem, ProblemKind } from './target.ts';

// 507 for `full`: it is a bound of ours that time does not lift, so no client should try again by itself as after a 429.
const STATUS: Readonly<Record<Exclude<ProblemKind, 'invalid'>, number>> = {
  not_found: 404,
  exists: 409,
  stale: 412,
  protected: 409,
  full: 507,
  storage_failed: 500,
  records_blocked: 503,
  busy: 503,
};

/** `loc` is where in the request the document stood. */
export function sendProblem(problem: Problem, loc: Loc): AdminResponse {
  if (problem.kind === 'invalid')
    return invalid(problem.issues.map((issue) => ({ ...issue, loc: [...loc, ...issue.loc] })));
  const status = STATUS[problem.kind];
  return refused({
    status,
    reason: problem.kind,
    detail: problem.message,
    ...(status === 503 ? { fields: retryAfter(1000) } : {}),
  });
}
