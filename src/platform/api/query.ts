// The query of a request, by the schema of its route: text becomes the type that the schema wants. Pure.
import { type Issue, toLocKey } from '../../base/schema.ts';
import type { RequestParts } from './route.ts';

/** `value` is for the schema to check; the issues are about names, which the schema does not see. */
export type RawQuery = {
  readonly value: Readonly<Record<string, unknown>>;
  readonly issues: readonly Issue[];
};

/**
 * A name that the schema does not have is an issue, unless unknown names pass, and so is a repeated one where the schema wants
 * one value.
 */
export function readQuery(
  search: URLSearchParams,
  { query, unknownNames = 'refuse' }: Pick<RequestParts, 'query' | 'unknownNames'>,
): RawQuery {
  const shape = query?.shape ?? {};
  const value: Record<string, unknown> = {};
  const issues: Issue[] = [];
  for (const name of new Set(search.keys())) {
    const found = Object.hasOwn(shape, name) ? kindOf(shape[name]) : undefined;
    if (found === undefined) {
      if (unknownNames === 'refuse') issues.push(unknownName(name));
      continue;
    }
    const texts = search.getAll(name);
    if (found.isList) value[name] = texts.map((text) => read(text, found.kind));
    else if (texts.length > 1) issues.push(repeatedName(name));
    else value[name] = read(texts[0] ?? '', found.kind);
  }
  return { value, issues };
}

/** Sent once for each value: `?name=a&name=b`. */
export function isListParameter(schema: unknown): boolean {
  return kindOf(schema).isList;
}

/** Of a character, in a percent-encoded query, there are up to 12 bytes; a head has 16 KB. */
const MAX_FITTING_CHARS = 1_000;

/** Whether what is valid by its schema can be longer than the head of a request may be. */
export function canExceedHead(schema: unknown): boolean {
  const { innerType } = defOf(schema);
  if (innerType !== undefined) return canExceedHead(innerType);
  const { maxLength } = schema as { readonly maxLength?: unknown };
  return isListParameter(schema) || (typeof maxLength === 'number' && maxLength > MAX_FITTING_CHARS);
}

type Kind = { readonly kind: string; readonly isList: boolean };

function kindOf(schema: unknown): Kind {
  const def = defOf(schema);
  if (def.innerType !== undefined) return kindOf(def.innerType);
  if (def.type === 'array') return { kind: kindOf(def.element).kind, isList: true };
  return { kind: def.type, isList: false };
}

/** The part of zod's own description that is used here. */
type Def = { readonly type: string; readonly innerType?: unknown; readonly element?: unknown };

function defOf(schema: unknown): Def {
  return (schema as { readonly def: Def }).def;
}

/** What is no number stays a text, which the schema then rejects with its own message. */
function read(text: string, kind: string): unknown {
  if (kind === 'number') return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  if (kind !== 'boolean') return text;
  return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
}

function unknownName(name: string): Issue {
  const msg = 'Unknown query parameter: remove it, or correct its spelling';
  return { loc: ['query', toLocKey(name)], msg, type: 'extra_forbidden' };
}

function repeatedName(name: string): Issue {
  return { loc: ['query', name], msg: 'Send this query parameter once', type: 'value_error' };
}
