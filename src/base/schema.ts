// The adapter of zod: parses unknown input to a typed value or to every issue at once, as `{loc, msg, type}`.
// The issue types are those of pydantic, because clients of the API that this product implements already match them.
// A message never repeats the input, which may contain a credential.
import { z } from 'zod';

export { z } from 'zod';

// Most schemas parse one document in the life of a process. Code that zod would generate for each costs more than it saves.
z.config({ jitless: true });

export type Loc = readonly (string | number)[];

/** Every `type` of an issue, of this file and of the checks elsewhere: programs may match them. */
export const issueTypes = [
  'bool_type',
  'dict_type',
  'enum',
  'extra_forbidden',
  'greater_than_equal',
  'int_type',
  'json_invalid',
  'less_than_equal',
  'list_type',
  'missing',
  'string_pattern_mismatch',
  'string_too_long',
  'string_too_short',
  'string_type',
  'string_unicode',
  'too_long',
  'too_many_issues',
  'too_short',
  'union_tag_invalid',
  'value_error',
  // Warnings:
  'closed',
  'file_wins',
  'loopback_closed',
  'no_proxy_overlap',
  'open_listener',
  'partly_denied',
  'shadowed',
] as const;

export type IssueType = (typeof issueTypes)[number];
export type Issue = { readonly loc: Loc; readonly msg: string; readonly type: IssueType };

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** The issues of a part that is at `loc` of the whole. */
export function prefixed(issues: readonly Issue[], loc: Loc): readonly Issue[] {
  return issues.map((issue) => ({ ...issue, loc: [...loc, ...issue.loc] }));
}

/** Checks `input` against `schema`; `loc` is put before every issue's own path. */
export function parseWith<T>(schema: z.ZodType<T>, input: unknown, loc: Loc = []): Parsed<T> {
  // `reportInput` puts the input into the issue, for toIssues to distinguish "absent" from "wrong". It is not passed on.
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return { ok: true, value: result.data };
  return { ok: false, issues: result.error.issues.flatMap((issue) => toIssues(issue, loc)) };
}

/** The JSON Schema (draft 2020-12) of what an author may write, or with `output` of what it is parsed to. */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'input'): unknown {
  return z.toJSONSchema(schema, { io });
}

/**
 * For records. Of a record zod leaves out a member of this name without a word, and a caller would rely on what is not there: it is an
 * issue.
 */
export function withoutPrototype<T extends z.ZodType>(schema: T) {
  return z
    .preprocess((input, context) => {
      if (typeof input === 'object' && input !== null && Object.hasOwn(input, '__proto__'))
        context.addIssue({ code: 'custom', path: ['__proto__'], message: PROTOTYPE });
      return input;
    }, schema)
    .describe('No member may have the name __proto__');
}

const PROTOTYPE = 'This name is not supported anywhere: choose another one';

/** At most a hundred issues; where there are more, one after them says how many. */
export function capIssues(issues: readonly Issue[]): readonly Issue[] {
  const more = issues.length - MAX_ISSUES;
  if (more <= 0) return issues;
  const msg = `${more} more issues are not shown; correct these first`;
  return [...issues.slice(0, MAX_ISSUES), { loc: [], msg, type: 'too_many_issues' }];
}

/**
 * A key or a name that the author wrote, for a message. One that is longer than names usually are is shortened to its
 * beginning, because it may be a credential in the wrong place.
 */
export function toLocKey(key: string): string {
  return (key.length > MAX_KEY ? `${key.slice(0, BEGINNING)}…` : key).toWellFormed();
}

const MAX_ISSUES = 100;
// Credentials are mostly longer.
const MAX_KEY = 32;
const BEGINNING = 8;

function toIssues(issue: z.core.$ZodIssue, prefix: Loc): Issue[] {
  const loc = [
    ...prefix,
    ...issue.path.map((part) => (typeof part === 'number' ? part : toLocKey(String(part)))),
  ];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      loc: [...loc, toLocKey(key)],
      msg: 'Unknown key: remove it, or correct its spelling',
      type: 'extra_forbidden',
    }));
  }
  return [{ loc, ...describe(issue) }];
}

type Described = Omit<Issue, 'loc'>;

function describe(issue: z.core.$ZodIssue): Described {
  switch (issue.code) {
    case 'invalid_type':
      return describeType(issue);
    case 'too_small':
    case 'too_big':
      return describeSize(issue);
    case 'invalid_value':
      return issue.input === undefined
        ? MISSING
        : { msg: `Input must be ${issue.values.map(quoted).join(' or ')}`, type: 'enum' };
    case 'invalid_union':
      return lacksTag(issue) ? MISSING : { msg: issue.message, type: 'union_tag_invalid' };
    case 'invalid_format':
      return { msg: DEFAULT_MESSAGES.get(issue.message) ?? issue.message, type: 'string_pattern_mismatch' };
    default:
      return { msg: issue.message, type: 'value_error' };
  }
}

/** zod reports a discriminated union with the whole object, also when the discriminator is absent. */
function lacksTag({ input, discriminator }: z.core.$ZodIssueInvalidUnion): boolean {
  if (input === undefined) return true;
  return (
    discriminator !== undefined && typeof input === 'object' && input !== null && !(discriminator in input)
  );
}

/** Those of zod that name its own terms. */
const DEFAULT_MESSAGES: ReadonlyMap<string, string> = new Map([
  ['Invalid GUID', 'Input must be a UUID'],
  ['Invalid UUID', 'Input must be a UUID'],
]);

const MISSING: Described = { msg: 'Field required', type: 'missing' };

const TYPES: ReadonlyMap<string, Described> = new Map([
  ['string', { msg: 'Input must be a string', type: 'string_type' }],
  ['int', { msg: 'Input must be a whole number', type: 'int_type' }],
  ['number', { msg: 'Input must be a number', type: 'int_type' }],
  ['boolean', { msg: 'Input must be true or false', type: 'bool_type' }],
  ['array', { msg: 'Input must be a list', type: 'list_type' }],
  ['object', { msg: 'Input must be an object', type: 'dict_type' }],
  ['record', { msg: 'Input must be an object', type: 'dict_type' }],
]);

function describeType(issue: z.core.$ZodIssueInvalidType): Described {
  if (issue.input === undefined) return MISSING;
  return TYPES.get(issue.expected) ?? { msg: issue.message, type: 'value_error' };
}

function describeSize(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): Described {
  const small = issue.code === 'too_small';
  const limit = small ? issue.minimum : issue.maximum;
  const word = small ? 'at least' : 'at most';
  switch (issue.origin) {
    case 'string':
      return {
        msg: `Input must have ${word} ${plural(limit, 'character')}`,
        type: small ? 'string_too_short' : 'string_too_long',
      };
    case 'array':
    case 'object':
    case 'record':
      return {
        msg: `Input must have ${word} ${plural(limit, 'entry', 'entries')}`,
        type: small ? 'too_short' : 'too_long',
      };
    default:
      return {
        msg: `Input must be ${word} ${limit}`,
        type: small ? 'greater_than_equal' : 'less_than_equal',
      };
  }
}

function plural(count: number | bigint, one: string, many: string = `${one}s`): string {
  return `${count} ${Number(count) === 1 ? one : many}`;
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
