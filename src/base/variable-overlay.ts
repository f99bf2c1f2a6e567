// Overlays environment variables on a settings document: each variable sets one key, and an issue with its value names
// the variable.
import type { Issue } from './schema.ts';

export type Variable = {
  readonly name: string;
  /** The path of its key in the document. */
  readonly path: readonly string[];
  readonly read: (text: string) => unknown;
};

export type Overlaid = {
  readonly document: unknown;
  /** The issue, with the name of the variable in its `loc` where a variable set the value. */
  naming(issue: Issue): Issue;
};

/** A copy of `base` with the variables of `env` set in it; an empty variable counts as not set. */
export function overlayVariables(
  base: Readonly<Record<string, unknown>>,
  variables: readonly Variable[],
  env: NodeJS.ProcessEnv,
): Overlaid {
  const document = structuredClone(base);
  const byPath = new Map<string, string>();
  for (const variable of variables) {
    const text = env[variable.name];
    if (text === undefined || text === '') continue;
    setAt(document, variable.path, variable.read(text));
    byPath.set(variable.path.join('.'), variable.name);
  }
  return { document, naming: (issue) => namingVariable(issue, byPath) };
}

export const asText = (text: string): unknown => text;
export const asList = (text: string): unknown => text.split(',').map((part) => part.trim());
export const asNumbers = (text: string): unknown => text.split(',').map((part) => Number(part.trim()));
export const asBoolean = (text: string): unknown =>
  text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;

/** One variable for each key of a group of numbers: `…LIMITS_BODY_BYTES` for `limits.body_bytes`. */
export function numericVariables(prefix: string, group: string, defaults: object): Variable[] {
  return Object.keys(defaults).map((key) => ({
    name: `${prefix}${group}_${toSnakeCase(key)}`.toUpperCase(),
    path: [group, toSnakeCase(key)],
    read: Number,
  }));
}

export function toSnakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function namingVariable(issue: Issue, byPath: ReadonlyMap<string, string>): Issue {
  for (let length = issue.loc.length; length > 0; length -= 1) {
    const name = byPath.get(issue.loc.slice(0, length).join('.'));
    if (name !== undefined) return { ...issue, loc: [name, ...issue.loc.slice(length)] };
  }
  return issue;
}

function setAt(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...rest] = path;
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  const child = target[key];
  const isObject = typeof child === 'object' && child !== null && !Array.isArray(child);
  const next: Record<string, unknown> = isObject ? (child as Record<string, unknown>) : {};
  target[key] = next;
  setAt(next, rest, value);
}
