// What a handler returned, as JSON has it. Of users and values it is what JSON makes of them. In a filter, what JSON would leave
// out or change is refused: `{owner: undefined}` would become a filter without conditions, which shows everything.
import { Refusal } from '../method.ts';

/** Depth of objects and lists in a filter. */
const MAX_DEPTH = 64;

/** A copy, as JSON has it. Throws a Refusal that names `what`, and never a value. */
export function toJson(value: unknown, what: string): unknown {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    throw new Refusal('invalid', `The handler returned ${what} that JSON cannot have: a circle or a bigint`);
  }
}

/** A copy of which JSON changes nothing. Throws a Refusal that names `what`, and never a value. */
export function toExactJson(value: unknown, what: string, depth = 0): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw inexact(what, 'a number that is not finite');
  }
  if (typeof value !== 'object') throw inexact(what, value === undefined ? 'undefined' : `a ${typeof value}`);
  if (depth >= MAX_DEPTH) throw inexact(what, `more than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return Array.from(value, (member) => toExactJson(member, what, depth + 1));
  if (!isPlain(value)) throw inexact(what, 'an object of a class');
  const members = Object.entries(value);
  return Object.fromEntries(members.map(([key, member]) => [key, toExactJson(member, what, depth + 1)]));
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function inexact(what: string, found: string): Refusal {
  return new Refusal('invalid', `The handler returned ${what} with ${found}, which JSON does not have`);
}
