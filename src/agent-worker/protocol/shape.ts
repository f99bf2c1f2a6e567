// Checks of what came over a channel: small functions that are put together to the shape of a message, parameters or a result.

export type Members = Readonly<Record<string, unknown>>;
export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
export const isFlag: Check = (value) => typeof value === 'boolean';
/** Ids, sequences, numbers of bytes. */
export const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
export const isPresent: Check = (value) => value !== undefined;

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

export function oneOf(...values: readonly unknown[]): Check {
  return (value) => values.includes(value);
}

export function anyOf(...checks: readonly Check[]): Check {
  return (value) => checks.some((check) => check(value));
}

export function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every((one) => check(one));
}

/** An object whose members are all of one kind. */
export function recordOf(check: Check): Check {
  return (value) => isObject(value) && Object.values(value).every((one) => check(one));
}

/** An object with these members, and any others. */
export function shapeOf(members: Readonly<Record<string, Check>>): Check {
  const entries = Object.entries(members);
  return (value) => isObject(value) && entries.every(([name, check]) => check(value[name]));
}
