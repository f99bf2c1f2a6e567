// What a comparison asks of one value, independent of where the value is: `eq(name, "x")` as a test of a text. Pure.
import type { Part, ValueKind } from './fields.ts';
import type { Argument, Literal } from './syntax.ts';
import type { FilterIssue } from './tokens.ts';
import { isIssue, readValue, type Value } from './values.ts';

/** Text is ordered by code points. A value that is absent passes `equal` to null, and `unequal` to all else. */
export type Test =
  | { readonly is: 'equal' | 'unequal'; readonly value: Value | null }
  | { readonly is: Order; readonly value: Value }
  | { readonly is: 'among'; readonly values: readonly Value[] }
  | { readonly is: 'containing'; readonly text: string };

export type Order = 'less' | 'at_most' | 'more' | 'at_least';

export type PartTest = { readonly part: Part; readonly test: Test };

const ORDERS: Readonly<Record<string, Order>> = { lt: 'less', lte: 'at_most', gt: 'more', gte: 'at_least' };

const EQUALITY = ['eq', 'neq', 'in'];
const ORDERED = [...EQUALITY, 'gt', 'gte', 'lt', 'lte'];

/** The operators that values of a kind have. */
const OPERATORS: Readonly<Record<ValueKind, readonly string[]>> = {
  text: [...ORDERED, 'search'],
  uuid: EQUALITY,
  time: ORDERED,
  duration: ORDERED,
  number: ORDERED,
  flag: EQUALITY,
  any: [...ORDERED, 'search'],
};

/** The test of an operator that takes a value of the kind; an issue where it is none, or the value is of another kind. */
export function readTest(operator: Operator, kind: ValueKind, operand: Argument): Test | FilterIssue {
  const { name, at } = operator;
  if (!OPERATORS[kind].includes(name))
    return { at, msg: `This field has the operators ${OPERATORS[kind].join(', ')}` };
  if (name === 'in') return readAmong(kind, operand);
  if (operand.kind === 'list' || operand.kind === 'call' || operand.kind === 'name')
    return { at: operand.at, msg: 'Expected a value: a text in quotes, a number, true, false or null' };
  if (name === 'search') return readContaining(operand);
  const order = ORDERS[name];
  if (order !== undefined) return readOrdered(order, kind, operand);
  const is = name === 'eq' ? 'equal' : 'unequal';
  if (operand.kind === 'null') return { is, value: null };
  const value = readValue(operand, kind);
  return isIssue(value) ? value : { is, value };
}

type Operator = { readonly name: string; readonly at: number };

function readAmong(kind: ValueKind, operand: Argument): Test | FilterIssue {
  if (operand.kind !== 'list') return { at: operand.at, msg: 'Expected a list, such as ["a", "b"]' };
  const values: Value[] = [];
  for (const item of operand.items) {
    if (item.kind === 'null') return { at: item.at, msg: 'A list has no null: use eq(field, null)' };
    const value = readValue(item, kind);
    if (isIssue(value)) return value;
    values.push(value);
  }
  return { is: 'among', values };
}

/** A database that looks for a text compares it at each character of a value, and ends no search in the middle of one. */
export const MAX_SEARCHED = 1_000;

export function readContaining(
  operand: Argument,
): { readonly is: 'containing'; readonly text: string } | FilterIssue {
  if (operand.kind !== 'text') return { at: operand.at, msg: 'Expected a text in quotes' };
  if (operand.text.length > MAX_SEARCHED)
    return { at: operand.at, msg: `A text that is searched for has at most ${MAX_SEARCHED} characters` };
  return { is: 'containing', text: operand.text };
}

function readOrdered(is: Order, kind: ValueKind, operand: Literal): Test | FilterIssue {
  const { at } = operand;
  if (operand.kind === 'null' || (kind === 'any' && operand.kind === 'flag'))
    return { at, msg: 'Only texts, numbers and times have an order' };
  const value = readValue(operand, kind);
  return isIssue(value) ? value : { is, value };
}
