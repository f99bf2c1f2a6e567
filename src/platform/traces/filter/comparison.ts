// One comparison of a filter: an operator with a field and a value, checked against what the field has. Pure.
import type { Filter } from './filter.ts';
import type { PartCondition } from './pairs.ts';
import { type Field, findField } from './fields.ts';
import type { Argument, Call } from './syntax.ts';
import { readContaining, readTest } from './value-test.ts';
import type { FilterIssue } from './tokens.ts';
import { isIssue, readContained } from './values.ts';

/** A part waits for the others of its `and`. */
export type Condition = Filter | PartCondition;

const OPERATORS: readonly string[] = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'has', 'search', 'in'];

export function readComparison(call: Call): Condition | FilterIssue {
  const { name, at, args } = call;
  if (!OPERATORS.includes(name))
    return { at, msg: `Unknown operator: use and, or, not, ${OPERATORS.join(', ')}` };
  const [first, second, ...more] = args;
  if (name === 'search' && first !== undefined && second === undefined) return readSearch(first);
  if (first === undefined || second === undefined || more.length > 0) {
    const one = name === 'search' ? ', or a text alone' : '';
    return { at, msg: `Expected two arguments: a field and a value${one}` };
  }
  if (first.kind !== 'name') return { at: first.at, msg: 'Expected the name of a field' };
  const field = findField(first.name);
  if (field === undefined)
    return { at: first.at, msg: 'Unknown field: see the fields of the filter language' };
  return readFieldTest(call, field, second);
}

/** How many characters are looked for. */
export function searchedLength(condition: Condition): number {
  if (condition.kind === 'search' || condition.kind === 'json') return condition.text.length;
  if (condition.kind === 'tag') return condition.is === 'containing' ? condition.text.length : 0;
  const isTest = condition.kind === 'column' || condition.kind === 'part';
  return isTest && condition.test.is === 'containing' ? condition.test.text.length : 0;
}

function readSearch(argument: Argument): Condition | FilterIssue {
  const test = readContaining(argument);
  return isIssue(test) ? test : { kind: 'search', text: test.text };
}

function readFieldTest(call: Call, field: Field, operand: Argument): Condition | FilterIssue {
  switch (field.kind) {
    case 'tags':
      return readTagTest(call, operand);
    case 'json':
      return readJsonTest(call, field, operand);
    case 'execution_order':
      return readFirstRun(call, operand);
    case 'column': {
      const test = readTest(call, field.values, operand);
      return isIssue(test) ? test : { kind: 'column', column: field.column, test };
    }
    case 'part': {
      const test = readTest(call, field.values, operand);
      const { family, part } = field;
      return isIssue(test) ? test : { kind: 'part', family, part, test, at: call.at };
    }
  }
}

function readTagTest({ name, at }: Call, operand: Argument): Condition | FilterIssue {
  if (name !== 'has' && name !== 'search') return { at, msg: 'Tags have the operators has, search' };
  const test = readContaining(operand);
  if (isIssue(test)) return test;
  return { kind: 'tag', is: name === 'has' ? 'equal' : 'containing', text: test.text };
}

function readJsonTest(
  { name, at }: Call,
  { column }: Extract<Field, { readonly kind: 'json' }>,
  operand: Argument,
): Condition | FilterIssue {
  if (name === 'has' && column === 'metadata') {
    const contained = readContained(operand);
    return isIssue(contained) ? contained : { kind: 'metadata', contained: contained.json };
  }
  if (name === 'search') {
    const test = readContaining(operand);
    return isIssue(test) ? test : { kind: 'json', column, text: test.text };
  }
  const has = column === 'metadata' ? 'has, ' : '';
  if (name !== 'eq' && name !== 'neq')
    return { at, msg: `This field has the operators ${has}search, and eq and neq with null` };
  if (operand.kind !== 'null')
    return {
      at: operand.at,
      msg: `Expected null: use ${column === 'metadata' ? 'has or ' : ''}search for the content of this field`,
    };
  const absent = { kind: 'absent', column } as const;
  return name === 'eq' ? absent : { kind: 'not', filter: absent };
}

/** The first run of a trace is its root. */
function readFirstRun({ name, at }: Call, operand: Argument): Condition | FilterIssue {
  if (name !== 'eq' && name !== 'neq') return { at, msg: 'execution_order has the operators eq, neq' };
  if (operand.kind !== 'number' || operand.digits !== '1') return { at: operand.at, msg: 'Expected 1' };
  const test = { is: name === 'eq' ? 'equal' : 'unequal', value: { type: 'flag', flag: true } } as const;
  return { kind: 'column', column: 'is_root', test };
}
