// What is derived from the payloads of a run: texts and pairs for search, metadata, thread, tokens, costs, the time of the first token.
// Everything is bounded and storable: U+0000 and halves of surrogate pairs are replaced. Pure.
import { isObject } from '../../../base/json/json-document.ts';
import type { Pairs, RunValues, Usage } from './run-part.ts';
import { toMicroseconds } from './run-time.ts';

/** Of the text of one payload that is searched. */
export const MAX_TEXT = 65_536;
const MAX_PAIRS = 200;
const MAX_PAIR_TEXT = 1_000;
const MAX_NAME = 250;
/**
 * Of the paths of one payload together, besides four times the characters of the names and values that they lead to: names of members
 * are in the path of each value below them.
 */
const MAX_PATHS = 1_000;
const PATHS_RATIO = 4;
/** Of metadata: values beyond are left out of the search, not out of the run. */
const MAX_NODES = 2_000;
const MAX_DEPTH = 16;

export type DerivedField = 'inputs' | 'outputs' | 'extra' | 'events' | 'error';

/** `value` is the JSON of a field, or a sketch of it. */
export function deriveValues(field: DerivedField, value: unknown): RunValues {
  switch (field) {
    case 'inputs':
      return { inputs_pairs: toPairs(value), inputs_text: toText(value) };
    case 'outputs': {
      const usage = usageOfOutputs(value);
      const searched = { outputs_pairs: toPairs(value), outputs_text: toText(value) };
      return usage === undefined ? searched : { ...searched, usage_in_outputs: usage };
    }
    case 'extra':
      return deriveExtra(value);
    case 'events': {
      const time = firstTokenTime(value);
      return time === undefined ? {} : { first_token_time: time };
    }
    case 'error':
      return { error: typeof value === 'string' ? storable(value.slice(0, MAX_TEXT)) : toText(value) };
  }
}

function deriveExtra(value: unknown): RunValues {
  const given = isObject(value) ? value['metadata'] : undefined;
  if (!isObject(given)) return { metadata: {} };
  const metadata = toStorable(given, { nodes: MAX_NODES }) as Readonly<Record<string, unknown>>;
  const thread = [given['session_id'], given['thread_id'], given['conversation_id']].find(isThreadId);
  const usage = toUsage(given['usage_metadata']);
  return {
    metadata,
    ...(thread === undefined ? {} : { thread_id: storable(String(thread)).slice(0, MAX_PAIR_TEXT) }),
    ...(usage === undefined ? {} : { usage_in_extra: usage }),
  };
}

function isThreadId(value: unknown): value is string | number {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}

/** Of the outputs, else of the last of their messages. */
function usageOfOutputs(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const own = toUsage(value['usage_metadata']);
  if (own !== undefined) return own;
  const { messages } = value;
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  return isObject(last) ? toUsage(last['usage_metadata']) : undefined;
}

function toUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const [input, output] = [toTokens(value['input_tokens']), toTokens(value['output_tokens'])];
  const [inputCost, outputCost] = [toNanos(value['input_cost']), toNanos(value['output_cost'])];
  const total = toTokens(value['total_tokens']) ?? sum(input, output);
  const cost = toNanos(value['total_cost']) ?? sum(inputCost, outputCost);
  const usage = {
    ...(input === undefined ? {} : { input_tokens: Number(input) }),
    ...(output === undefined ? {} : { output_tokens: Number(output) }),
    ...(total === undefined ? {} : { total_tokens: Number(total) }),
    ...(inputCost === undefined ? {} : { input_cost: formatNanos(inputCost) }),
    ...(outputCost === undefined ? {} : { output_cost: formatNanos(outputCost) }),
    ...(cost === undefined ? {} : { total_cost: formatNanos(cost) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

function sum(one: bigint | undefined, other: bigint | undefined): bigint | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0n) + (other ?? 0n);
}

function toTokens(value: unknown): bigint | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 52
    ? BigInt(value)
    : undefined;
}

/** A cost below a billion as 10⁻⁹ of its unit: a number, or decimal text. */
function toNanos(value: unknown): bigint | undefined {
  const text = typeof value === 'number' && Math.abs(value) < 1e8 ? value.toFixed(9) : value;
  const match = typeof text === 'string' ? /^(-?)(\d{1,8})(?:\.(\d{1,40}))?$/.exec(text) : null;
  if (match === null) return undefined;
  const [, sign, units = '0', fraction = ''] = match;
  const nanos = BigInt(units) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return sign === '-' ? -nanos : nanos;
}

function formatNanos(nanos: bigint): string {
  const digits = String(nanos < 0n ? -nanos : nanos).padStart(10, '0');
  return `${nanos < 0n ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

function firstTokenTime(value: unknown): string | undefined {
  if (!Array.isArray(value)) return undefined;
  const first: unknown = value.find((event) => isObject(event) && event['name'] === 'new_token');
  return isObject(first) ? toMicroseconds(first['time']) : undefined;
}

/** Each scalar with its path: names of members and places in lists, joined by dots. */
function toPairs(value: unknown): Pairs {
  const pairs: Record<string, string | null> = Object.create(null);
  let left = MAX_PAIRS;
  let chars = MAX_PATHS;
  const add = (path: string, one: unknown, depth: number): void => {
    if (left === 0 || depth > MAX_DEPTH || path.length > MAX_NAME) return;
    if (typeof one !== 'object' || one === null) {
      const text = one === null ? null : String(one).slice(0, MAX_PAIR_TEXT);
      chars += PATHS_RATIO * (text?.length ?? 0) - path.length;
      if (chars < 0) left = 0;
      if (left === 0) return;
      left -= 1;
      pairs[storable(path)] = text === null ? null : storable(text);
      return;
    }
    const names: Iterable<string | number> = Array.isArray(one) ? one.keys() : Object.keys(one);
    for (const name of names) {
      if (left === 0) return;
      chars += PATHS_RATIO * String(name).length;
      add(depth === 0 ? String(name) : `${path}.${name}`, (one as Record<string, unknown>)[name], depth + 1);
    }
  };
  if (typeof value === 'object' && value !== null) add('', value, 0);
  return { ...pairs };
}

function toText(value: unknown): string {
  const text = toPlainText(value);
  if (text !== undefined && !/\\u(?:0000|d[89a-f])/.test(text)) return text.slice(0, MAX_TEXT);
  return storable(JSON.stringify(toStorable(value, { nodes: Infinity })).slice(0, MAX_TEXT));
}

/** Undefined for a value that is too deep. */
function toPlainText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** A copy whose texts and names are storable, within a number of values. */
function toStorable(value: unknown, budget: { nodes: number }, depth = 0): unknown {
  if (typeof value === 'string') return storable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return null;
  const take = (): boolean => (budget.nodes -= 1) >= 0;
  if (Array.isArray(value)) return value.filter(take).map((one) => toStorable(one, budget, depth + 1));
  const copy: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value))
    if (take()) copy[storable(name)] = toStorable(member, budget, depth + 1);
  return { ...copy };
}

export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}
