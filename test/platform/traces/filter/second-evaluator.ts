// A second, independent reading of the filter language: the text of a filter and a run as its client sent it, to true or false. It
// knows nothing of the parser or of the store. Slow and plain on purpose.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export type SentFeedback = {
  readonly key: string;
  readonly score: number | null;
  readonly value: Json;
  readonly source: string | null;
};

export type SentRun = {
  readonly id: string;
  readonly session_id: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly reference_example_id: string | null;
  readonly name: string;
  readonly run_type: string;
  /** Microseconds since 1970. */
  readonly start: number;
  readonly end: number | null;
  readonly error: string | null;
  readonly tags: readonly string[];
  readonly metadata: { readonly [name: string]: Json };
  readonly inputs: Json | undefined;
  readonly outputs: Json | undefined;
  readonly tokens: { readonly prompt: number; readonly completion: number; readonly total: number } | null;
  readonly cost: number | null;
  readonly feedback: readonly SentFeedback[];
};

type Call = { readonly op: string; readonly args: readonly Operand[] };
type Operand =
  | { readonly call: Call }
  | { readonly field: string }
  | { readonly value: Literal }
  | { readonly list: readonly Literal[] };
type Literal = null | boolean | string | { readonly digits: string };

export function evaluate(text: string, run: SentRun): boolean {
  const tokens =
    text.match(/"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|[A-Za-z_]\w*|-?\d[\d.eE+-]*|[(),[\]]/g) ?? [];
  const first = readOperand(tokens.values());
  if (!('call' in first)) throw new Error(`not a call: ${text}`);
  return holds(first.call, run);
}

/** Reads one operand; lists and arguments end with the bracket, which is taken. */
function readOperand(tokens: Iterator<string>, given?: string): Operand {
  const token = given ?? take(tokens);
  if (token === '[') return { list: readList(tokens) };
  if (!/^[A-Za-z_]/.test(token)) return { value: toLiteral(token) };
  if (['true', 'false', 'null'].includes(token)) return { value: toLiteral(token) };
  if (!OPERATORS.has(token)) return { field: token };
  const args: Operand[] = [];
  take(tokens);
  for (let next = take(tokens); next !== ')'; next = take(tokens))
    if (next !== ',') args.push(readOperand(tokens, next));
  return { call: { op: token, args } };
}

const OPERATORS = new Set('and or not eq neq gt gte lt lte has search in'.split(' '));

function readList(tokens: Iterator<string>): readonly Literal[] {
  const items: Literal[] = [];
  for (let next = take(tokens); next !== ']'; next = take(tokens))
    if (next !== ',') items.push(toLiteral(next));
  return items;
}

function take(tokens: Iterator<string>): string {
  const { done, value } = tokens.next();
  if (done === true) throw new Error('the filter is not complete');
  return value;
}

function toLiteral(token: string): Literal {
  if (token === 'null') return null;
  if (token === 'true' || token === 'false') return token === 'true';
  if (token.startsWith('"')) return clean(JSON.parse(token));
  if (!token.startsWith("'")) return { digits: token };
  // The other quotes: written as JSON first.
  const inner = token.slice(1, -1).replaceAll(/\\'|"|\\[^']/g, (one) => {
    if (one === "\\'") return "'";
    return one === '"' ? '\\"' : one;
  });
  return clean(JSON.parse(`"${inner}"`));
}

/** What no store can keep. */
const clean = (text: string): string => text.replaceAll('\0', '\ufffd');

function holds({ op, args }: Call, run: SentRun): boolean {
  const calls = args.flatMap((one) => ('call' in one ? [one.call] : []));
  if (op === 'not') return !calls.some((one) => holdsAlone(one, run));
  if (op === 'or') return calls.some((one) => holdsAlone(one, run));
  if (op !== 'and') return holdsAlone({ op, args }, run);
  const families = Map.groupBy(calls, familyOf);
  return [...families].every(([family, group]) =>
    family === undefined ? group.every((one) => holds(one, run)) : holdsOfPairs(family, group, run),
  );
}

function holdsAlone(call: Call, run: SentRun): boolean {
  const family = familyOf(call);
  if (family !== undefined) return holdsOfPairs(family, [call], run);
  return ['and', 'or', 'not'].includes(call.op) ? holds(call, run) : holdsOfField(call, run);
}

type Pair = Readonly<Record<string, string | number | null>>;

function familyOf({ args: [first] }: Call): string | undefined {
  if (first === undefined || !('field' in first)) return undefined;
  return /^(metadata|input|output|feedback)_/.exec(first.field)?.[1];
}

/** Conditions about one pair. Where all of them deny, no pair is like that. */
function holdsOfPairs(family: string, calls: readonly Call[], run: SentRun): boolean {
  const pairs = pairsOf(family, run);
  const passes = (call: Call, pair: Pair): boolean => {
    const [field, operand] = call.args;
    const part = field !== undefined && 'field' in field ? field.field.slice(family.length + 1) : '';
    return compare(call.op, pair[part] ?? null, operand, part === 'value');
  };
  const isDenial = ({ op, args: [, operand] }: Call): boolean =>
    op === 'neq' && operand !== undefined && 'value' in operand && operand.value !== null;
  if (!calls.every(isDenial)) return pairs.some((pair) => calls.every((call) => passes(call, pair)));
  return calls.every((call) => pairs.every((pair) => !passes({ ...call, op: 'eq' }, pair)));
}

function pairsOf(family: string, run: SentRun): readonly Pair[] {
  if (family === 'metadata')
    return Object.entries(run.metadata).map(([key, value]) => ({
      key: clean(key),
      value: scalarText(value),
    }));
  if (family === 'input') return leaves(undefined, run.inputs ?? null);
  if (family === 'output') return leaves(undefined, run.outputs ?? null);
  return run.feedback.map(({ key, score, value, source }) => ({
    key,
    score,
    value: scalarText(value),
    source,
  }));
}

function scalarText(value: Json): string | null {
  if (typeof value === 'string') return clean(value);
  return typeof value === 'number' || typeof value === 'boolean' ? JSON.stringify(value) : null;
}

function leaves(path: string | undefined, value: Json): readonly Pair[] {
  if (typeof value !== 'object' || value === null)
    return path === undefined ? [] : [{ key: path, value: scalarText(value) }];
  return Object.entries(value).flatMap(([name, member]) =>
    leaves(path === undefined ? clean(name) : `${path}.${clean(name)}`, member),
  );
}

function holdsOfField({ op, args: [first, second] }: Call, run: SentRun): boolean {
  if (first === undefined) throw new Error('no operand');
  if ('value' in first) return searchesAll(String(first.value), run);
  const field = 'field' in first ? first.field : '';
  const text = second !== undefined && 'value' in second ? second.value : undefined;
  if (field === 'tags')
    return run.tags.some((tag) => (op === 'has' ? clean(tag) === text : clean(tag).includes(String(text))));
  if (field === 'inputs' || field === 'outputs' || field === 'metadata') {
    if (op === 'has') return contains(run.metadata, JSON.parse(String(text)));
    if (op === 'search') return searchesJson(jsonOf(field, run), String(text));
    return (jsonOf(field, run) === undefined) === (op === 'eq');
  }
  return compare(op, columnOf(field, run), second, false, field);
}

function jsonOf(field: 'inputs' | 'outputs' | 'metadata', run: SentRun): Json | undefined {
  const value = run[field];
  const isEmpty = value === null || (field === 'metadata' && Object.keys(value as object).length === 0);
  return isEmpty ? undefined : value;
}

function searchesJson(value: Json | undefined, text: string): boolean {
  if (value === undefined) return false;
  const json = clean(JSON.stringify(cleaned(value)));
  return json.includes(text) || json.includes(JSON.stringify(text).slice(1, -1));
}

function cleaned(value: Json): Json {
  if (typeof value === 'string') return clean(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cleaned);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [clean(name), cleaned(member)]));
}

function searchesAll(text: string, run: SentRun): boolean {
  const texts = [run.name, run.error, ...run.tags].flatMap((one) => (one === null ? [] : [clean(one)]));
  if (texts.some((one) => one.includes(text))) return true;
  return (['inputs', 'outputs', 'metadata'] as const).some((field) => searchesJson(jsonOf(field, run), text));
}

function contains(whole: Json, part: Json): boolean {
  if (typeof part !== 'object' || part === null) {
    const [one, other] = [whole, part].map((each) => (typeof each === 'string' ? clean(each) : each));
    return one === other;
  }
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole) !== Array.isArray(part))
    return false;
  if (Array.isArray(part))
    return part.every((one) => (whole as readonly Json[]).some((each) => contains(each, one)));
  return Object.entries(part).every(
    ([name, one]) =>
      Object.hasOwn(whole, name) && contains((whole as Record<string, Json>)[name] ?? null, one),
  );
}

type Scalar = string | number | boolean | null;

function columnOf(field: string, run: SentRun): Scalar {
  const { start, end, error, tokens, parent_run_id, metadata } = run;
  switch (field) {
    case 'status':
      if (error !== null) return 'error';
      return end === null ? 'pending' : 'success';
    case 'is_root':
      return parent_run_id === null;
    case 'execution_order':
      return parent_run_id === null ? 1 : 2;
    case 'start_time':
      return start;
    case 'end_time':
      return end;
    case 'latency':
      return end === null ? null : (end - start) / 1e6;
    case 'total_tokens':
      return tokens?.total ?? null;
    case 'prompt_tokens':
      return tokens?.prompt ?? null;
    case 'completion_tokens':
      return tokens?.completion ?? null;
    case 'total_cost':
      return run.cost;
    case 'thread_id': {
      const named = [metadata['session_id'], metadata['thread_id'], metadata['conversation_id']];
      const thread = named.find((one) => (typeof one === 'string' && one !== '') || typeof one === 'number');
      return thread === undefined ? null : clean(String(thread));
    }
    default: {
      const value = run[field as 'name'] as Scalar;
      return typeof value === 'string' ? clean(value) : value;
    }
  }
}

/** `isLoose`: the value is a text, and is compared with what the filter gives. */
function compare(
  op: string,
  have: Scalar,
  operand: Operand | undefined,
  isLoose: boolean,
  field = '',
): boolean {
  if (operand === undefined) throw new Error('no operand');
  if ('list' in operand)
    return operand.list.some((one) => compare('eq', have, { value: one }, isLoose, field));
  if (!('value' in operand)) throw new Error('no value');
  const { value } = operand;
  if (value === null) return (have === null) === (op === 'eq');
  const wanted = isLoose && typeof value === 'boolean' ? String(value) : toScalar(value, field);
  const own = isLoose && typeof wanted === 'number' ? toNumber(have) : have;
  if (op === 'search') return typeof own === 'string' && own.includes(String(wanted));
  if (op === 'eq' || op === 'neq') return (own !== null && order(own, wanted) === 0) === (op === 'eq');
  if (own === null) return false;
  const sign = order(own, wanted);
  return { gt: sign > 0, gte: sign >= 0, lt: sign < 0, lte: sign <= 0 }[op] ?? false;
}

function toNumber(have: Scalar): number | null {
  const isNumber = typeof have === 'string' && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(have);
  return isNumber ? Number(have) : null;
}

function toScalar(value: NonNullable<Literal>, field: string): string | number | boolean {
  if (typeof value === 'object') return Number(value.digits);
  if (typeof value === 'boolean') return value;
  if (field.endsWith('_time')) {
    const [, fraction = ''] = /\.(\d+)/.exec(value) ?? [];
    const whole = Date.parse(`${value.replace(/\.\d+/, '').replace(/Z$/, '')}Z`);
    return whole * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
  }
  if (field === 'latency') {
    const [, number = '', unit = ''] = /^([\d.]+)(ms|s|m)$/.exec(value) ?? [];
    return (Number(number) * ({ ms: 1000, s: 1_000_000, m: 60_000_000 }[unit] ?? NaN)) / 1e6;
  }
  return field === 'id' || field.endsWith('_id')
    ? field === 'thread_id'
      ? value
      : value.toLowerCase()
    : value;
}

function order(one: Scalar, other: Scalar): number {
  if (typeof one !== 'string' || typeof other !== 'string') return Number(one) - Number(other);
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
