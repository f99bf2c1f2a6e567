// What the platform rejects, by the names of the command line: whoever has given an option does not know the field in which it was sent.
import { InputError } from '../../base/input-error.ts';
import { CallRejected, type Problem } from './platform-call.ts';

/** By fields of the API, the options or operands that they have come from. */
export type FieldNames = Readonly<Record<string, string>>;

/** Statuses by which the platform asks to come back later. */
const LATER: readonly number[] = [408, 429];

/** An InputError for what the caller must correct; otherwise `error`. */
export function describeRejection(error: unknown, names: FieldNames): unknown {
  if (!(error instanceof CallRejected) || error.status < 400 || error.status > 499) return error;
  if (LATER.includes(error.status)) return error;
  const message = error.problems.length === 0 ? nameSubject(error, names) : nameProblems(error, names);
  return new InputError(message, { cause: error });
}

/** With the call where a field has come from no option. */
function nameProblems({ message, problems }: CallRejected, names: FieldNames): string {
  const named = problems.map(({ loc, msg }) => ({ name: findName(loc, names), loc, msg }));
  const lines = named.map(({ name, loc, msg }) => `${name ?? loc.map(String).join('.')}: ${msg}`);
  const [call = ''] = message.split('\n');
  const isComplete = named.every(({ name }) => name !== undefined);
  return (isComplete ? lines : [call, ...lines]).join('\n  ');
}

/** `secrets.0.name` is not the name of the deployment. */
function findName(loc: Problem['loc'], names: FieldNames): string | undefined {
  return loc.includes('secrets') ? undefined : names[String(loc.at(-1))];
}

/** `Revision ID … not found.` is about what an option names. */
function nameSubject({ status, message }: CallRejected, names: FieldNames): string {
  const option = names['revision_id'];
  return status === 404 && option !== undefined && /: Revision ID /.test(message)
    ? `${option}: ${message}`
    : message;
}
