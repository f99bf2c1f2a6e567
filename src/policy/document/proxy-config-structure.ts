// Checks that run before any other reader of a document, because what they find would mislead or delay one: the number
// of values, the nesting, `__proto__` as a key, text that is not Unicode. Knows some keys by name, and nothing else of
// the schema.
import { type Issue, toLocKey } from '../../base/schema.ts';

/** Where there is too much of something, that is the only issue: the rest is not read. */
export function findStructureIssues(document: unknown): readonly Issue[] {
  const walk: Walk = { trail: [], issues: [], values: 0, counts: new Map() };
  descend(document, walk);
  if (walk.values > MAX_VALUES) {
    const msg = `The document must have at most ${MAX_VALUES} values`;
    return [{ loc: [], msg, type: 'too_long' }];
  }
  const excesses = [...walk.counts].flatMap(([kind, count]) => excessOf(kind, count));
  return excesses.length > 0 ? excesses : walk.issues;
}

const MAX_DEPTH = 16;
// More than the limits below allow any document to hold.
const MAX_VALUES = 75_000;
// The longest list of the schema, and no object is longer. The schema would parse all of a longer one before rejecting it.
const MAX_LIST = 1000;
// Validating ten thousand of each blocks the event loop, and so every other client, for a quarter of a second.
const MAX_OF_A_KIND = 10_000;
// Each is rendered, and turned into the forms that are masked in responses.
const MAX_HEADERS = 1_000;

const KINDS: ReadonlyMap<string, string> = new Map([
  ['match_hosts', 'match_hosts'],
  ['match_paths', 'match_paths'],
  ['no_proxy', 'no_proxy'],
  ['env_vars', 'env_vars'],
  ['headers', 'headers'],
  ['request_headers', 'headers'],
]);

type Walk = {
  readonly trail: (string | number)[];
  readonly issues: Issue[];
  readonly counts: Map<string, number>;
  values: number;
};

function descend(input: unknown, walk: Walk): void {
  const { trail, issues } = walk;
  const report = (msg: string, type: Issue['type']): void => void issues.push({ loc: [...trail], msg, type });
  if (trail.length > MAX_DEPTH) return report(`Nested deeper than ${MAX_DEPTH} levels`, 'value_error');
  if (typeof input === 'string' && !input.isWellFormed())
    return report('Input must be valid Unicode', 'string_unicode');
  if (typeof input !== 'object' || input === null) return;
  const entries = Array.isArray(input) ? input.entries() : Object.entries(input);
  const length = Array.isArray(input) ? input.length : Object.keys(input).length;
  if (length > MAX_LIST) return report(`Input must have at most ${MAX_LIST} entries`, 'too_long');
  walk.values += length;
  count(walk, length);
  for (const [key, value] of entries) {
    if (walk.values > MAX_VALUES) return;
    trail.push(typeof key === 'string' ? toLocKey(key) : key);
    if (typeof key === 'string' && isMisleading(key))
      report('This key is not supported anywhere', 'extra_forbidden');
    else descend(value, walk);
    trail.pop();
  }
}

function count({ trail, counts }: Walk, length: number): void {
  const kind = KINDS.get(String(trail.at(-1)));
  if (kind !== undefined) counts.set(kind, (counts.get(kind) ?? 0) + length);
}

function excessOf(kind: string, found: number): Issue[] {
  const max = kind === 'headers' ? MAX_HEADERS : MAX_OF_A_KIND;
  const msg = `All ${kind} together must have at most ${max} entries; they have ${found}`;
  return found > max ? [{ loc: ['rules'], msg, type: 'too_long' }] : [];
}

function isMisleading(key: string): boolean {
  return key === '__proto__' || !key.isWellFormed();
}
