// Variants of a valid request of one operation: valid, at a limit, or wrong in one place, part by part. Each says whether
// the document allows it.
import type { Ask } from '../../support/platform-api.ts';
import type { Parameter } from './document.ts';
import { namesIn, type PathValues, toPath } from './fixtures.ts';
import type { Probe } from './response-checks.ts';
import { typesOf } from './json-schema.ts';
import { type Example, toQuery } from './scene.ts';
import { validValues } from './schema-values.ts';
import { canary, variantsOf } from './schema-variants.ts';
import * as fc from 'fast-check';

/** A probe and its request; the path takes its values late, because the probe before may have used them up. */
export type Sent = Probe & { path(values: PathValues): string; readonly ask: Ask };

export function* probesOf(example: Example, maxBodyBytes: number): Generator<Sent> {
  yield* pathProbes(example);
  yield* queryProbes(example);
  yield* bodyProbes(example);
  if (example.operation.method !== 'GET') yield* rawProbes(example, maxBodyBytes);
  yield* headerProbes(example);
}

type Plain = { path(values: PathValues, query?: string): string; readonly ask: Ask };

function plain({ operation, query, body }: Example): Plain {
  return {
    path: (values, other = toQuery(query)) => toPath(operation.path, values) + other,
    ask: body === undefined ? {} : { body },
  };
}

/** As written in the request line. */
const PATH_TEXTS: readonly string[] = [
  ...[
    '%',
    '%zz',
    '%ff',
    '%00',
    'a%00b',
    '%C0%AF',
    '%ED%A0%80',
    '%E2%80%AE',
    '%0d%0aX:%20y',
    '%20',
    '+',
    ';',
    "'",
    '"',
  ],
  ...[
    '%2f',
    '..%2f..',
    '%252e%252e',
    '%2e%2e',
    '..',
    '.',
    '*',
    '~',
    ':listener_id',
    '%7Blistener_id%7D',
    '%7B%7D',
  ],
  ...['0', '-1', 'null', 'undefined', 'NaN', '__proto__', 'constructor', 'current', canary, 'a'.repeat(5000)],
  ...[
    '00000000-0000-0000-0000-000000000000',
    '0F0E0D0C-0B0A-4908-8706-050403020100',
    '%30f0e0d0c-0b0a-4908-8706-050403020100',
  ],
  ...[
    '0f0e0d0c0b0a49088706050403020100',
    '%D9%A1',
    '%F0%9F%98%80',
    `${'a'.repeat(63)}`,
    `${'a'.repeat(64)}`,
    'A',
    'a-',
    '-a',
  ],
];

function* pathProbes({ operation, ...example }: Example): Generator<Sent> {
  const names = namesIn(operation.path);
  for (const name of names)
    for (const text of PATH_TEXTS) {
      const schema = operation.parameters.find((one) => one.in === 'path' && one.name === name);
      const path = (values: PathValues): string =>
        toPath(operation.path.replace(`{${name}}`, '\0'), values).replace('\0', text);
      const decoded = decode(text);
      const isElsewhere =
        decoded === undefined || /[/\\]|^\.{0,2}$|%2e/i.test(`${decoded}${text === '%2e%2e' ? text : ''}`);
      const isValid = isElsewhere || decoded === 'current' ? undefined : schema?.isValid(decoded);
      const ask = plain({ operation, ...example }).ask;
      yield {
        what: `{${name}} is ${text.slice(0, 60)}`,
        operation,
        isValid,
        isElsewhere: isElsewhere || decoded === 'current',
        path,
        ask,
      };
    }
  for (const path of [
    `${operation.path}/`,
    `/${operation.path}`,
    `${operation.path}//`,
    `${operation.path}/%00`,
    `${operation.path.toUpperCase()}`,
  ])
    yield {
      what: `the path ${path}`,
      operation,
      isValid: undefined,
      isElsewhere: true,
      path: (values) => toPath(path, values),
      ask: plain({ operation, ...example }).ask,
    };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const QUERY_TEXTS: readonly string[] = [
  ...[
    '',
    ' ',
    '0',
    '-0',
    '01',
    '+1',
    ' 1',
    '1 ',
    '1.0',
    '1e1',
    '0x10',
    '1_0',
    'NaN',
    'Infinity',
    'null',
    'true',
    '١',
    '１',
  ],
  ...[
    '9'.repeat(15),
    '9'.repeat(16),
    '9'.repeat(400),
    '-1',
    '9007199254740993',
    canary,
    `${canary}\0`,
    '\u202e',
    '__proto__',
    '[]',
  ],
  ...["' or 1=1 --", '%00', 'eyJhIjoxfQ', 'W10', 'bnVsbA', Buffer.from('[1e999,"x"]').toString('base64url')],
  ...[
    '2027-01-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999999-23:59',
    '2027-01-01',
    'x'.repeat(600),
  ],
  ...[
    Buffer.from('["0000-01-01T00:00:00Z","0f0e0d0c-0b0a-4908-8706-050403020100",9007199254740993]').toString(
      'base64url',
    ),
  ],
  ...[
    Buffer.from('["2027-01-01T00:00:00.000Z","0f0e0d0c-0b0a-4908-8706-050403020100",1]').toString(
      'base64url',
    ),
  ],
];

function* queryProbes(example: Example): Generator<Sent> {
  const { operation } = example;
  const { path, ask } = plain(example);
  for (const parameter of operation.parameters.filter((one) => one.in === 'query')) {
    const { name, schema } = parameter;
    // The others that must be there.
    const { [name]: _, ...others } = example.query;
    const rest = toQuery(others).replace('?', '&');
    const numbers = [schema.minimum, schema.maximum].filter((one) => one !== undefined);
    const texts = [
      ...QUERY_TEXTS,
      ...numbers.flatMap((one) => [String(one), String(one - 1), String(one + 1)]),
    ];
    const valid = fc
      .sample(validValues(schema), { numRuns: 3, seed: 1 })
      .flatMap((one) => [one].flat().map(String));
    for (const text of [...texts, ...valid])
      yield {
        ...{
          what: `${name}=${JSON.stringify(text.slice(0, 60))}`,
          operation,
          isValid: isValidText(parameter, text),
          ask,
        },
        path: (values) => path(values, `?${new URLSearchParams([[name, text]])}${rest}`),
      };
    const isList = typesOf(schema).includes('array');
    const twice = new URLSearchParams([0, 1].map(() => [name, valid[0] ?? '1']));
    yield {
      what: `${name} twice`,
      operation,
      isValid: isList ? undefined : false,
      path: (values) => path(values, `?${twice}${rest}`),
      ask,
    };
    for (const raw of ['%', '%ff', '%zz', '%ED%A0%80', '%F0%9F%98%80', '%00'])
      yield {
        what: `${name}=${raw}`,
        operation,
        isValid: undefined,
        path: (values) => path(values, `?${name}=${raw}${rest}`),
        ask,
      };
    const many = new URLSearchParams(Array.from({ length: 2000 }, () => [name, canary]));
    yield {
      what: `${name} two thousand times`,
      operation,
      isValid: false,
      path: (values) => path(values, `?${many}${rest}`),
      ask,
    };
  }
  const hasQuery = toQuery(example.query) !== '';
  for (const name of ['x', '__proto__', 'constructor', 'toString', '', canary, 'limit[]', 'a.b', '%00'])
    yield {
      what: `an unknown parameter ${name}`,
      operation,
      isValid: operation.route.unknownNames === 'pass',
      path: (values) => `${path(values)}${hasQuery ? '&' : '?'}${new URLSearchParams([[name, canary]])}`,
      ask,
    };
  for (const raw of ['?', '?&&', '?=', '?#', '?%', '?&=&'])
    yield {
      what: `the query ${raw}`,
      operation,
      isValid: undefined,
      path: (values) => path(values, raw),
      ask,
    };
}

/** Undefined when the text may be read as a number, which the document does not say. */
function isValidText({ schema, isValid }: Parameter, text: string): boolean | undefined {
  const types = typesOf(schema);
  if (types.includes('array')) return isValid([text]);
  if (types.includes('integer')) {
    if (/^-?(?:0|[1-9]\d*)$/.test(text) && text !== '-0') return isValid(Number(text));
    return /^-?\d+$/.test(text) ? undefined : false;
  }
  return text === text.trim() ? isValid(text) : undefined;
}

function* bodyProbes(example: Example): Generator<Sent> {
  const { operation, body } = example;
  if (operation.body === undefined) return;
  for (const { what, at, value } of variantsOf(operation.body.schema, body))
    yield bodyProbe(example, value, `${at} ${what}`);
  // For the limits of depth and length.
  yield bodyProbe(example, undefined, 'no body');
}

export function bodyProbe(example: Example, value: unknown, what: string): Sent {
  const { operation } = example;
  const { path } = plain(example);
  const text = JSON.stringify(value);
  if (operation.body === undefined) throw new Error(`${operation.title} has no body`);
  if (text === undefined) return { what, operation, isValid: !operation.body.isRequired, path, ask: {} };
  const seen: unknown = JSON.parse(text);
  const isValid = isTrimmed(text) ? operation.body.isValid(seen) : undefined;
  return { what: `${what} (${text.slice(0, 120)})`, operation, isValid, path, ask: { raw: text } };
}

/** White space around a text may be trimmed: its length is then not the one that the document counts. */
function isTrimmed(text: string): boolean {
  return !/"\s|(?<!\\)(?:\\\\)*\\[tnrf]"|\s"|"(?:\\[tnrf]|\\u00[01])/.test(text.replaceAll(/[:,] ?"/g, ',"'));
}

const DEEP = 10_000;

function* rawProbes(example: Example, maxBytes: number): Generator<Sent> {
  const { operation, body } = example;
  const { path } = plain(example);
  const isWanted = operation.body !== undefined;
  const valid = JSON.stringify(body ?? {});
  const probe = (what: string, ask: Ask, isValid?: boolean): Sent => ({
    what,
    operation,
    isValid,
    path,
    ask,
  });
  const texts: readonly (readonly [string, string])[] = [
    ['no JSON', `{"${canary}"`],
    ['two documents', `${valid}${valid}`],
    ['a trailing comma', `${valid.slice(0, -1)},}`],
    ['NaN', '{"a":NaN}'],
    ['a repeated name', `{"a":1,"a":2}`],
    ['a repeated name with an escape', `{"a":1,"\\u0061":2}`],
    ['an unescaped U+0000', `{"a":"\0"}`],
    ['single quotes', "{'a':1}"],
    ['a comment', `/* ${canary} */ ${valid}`],
    ['lists in lists', '['.repeat(DEEP) + ']'.repeat(DEEP)],
    ['objects in objects', '{"a":'.repeat(DEEP) + '1' + '}'.repeat(DEEP)],
    ['unclosed lists', '['.repeat(DEEP)],
    ['a number of ten thousand digits', '9'.repeat(DEEP)],
    ['a text in quotes', JSON.stringify(canary)],
    ['null', 'null'],
  ];
  for (const [what, raw] of texts) yield probe(what, { raw }, false);
  yield probe('a list', { raw: '[]' }, operation.body?.isValid([]) === true);
  yield probe('only white space', { raw: ' \n' }, isWanted ? false : undefined);
  yield probe('a byte order mark', { raw: `\ufeff${valid}` });
  yield probe('no UTF-8', { raw: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) }, false);
  yield probe('UTF-16', { raw: new Uint8Array(Buffer.from(valid, 'utf16le')) }, false);
  const longest = ' '.repeat(maxBytes - Buffer.byteLength(valid)) + valid;
  yield probe('of the maximum length', { raw: longest }, isWanted ? true : undefined);
  yield probe('one byte too long', { raw: ` ${longest}` }, false);
  yield probe('one byte too long, streamed', { raw: streamOf(` ${longest}`) }, false);
  yield probe('of the maximum length, streamed', { raw: streamOf(longest) }, isWanted ? true : undefined);
  yield probe('with a Content-Length above the limit', {
    raw: valid,
    headers: { 'content-length': String(maxBytes + 1) },
  });
  yield probe('with a Content-Length that is not a number', {
    raw: valid,
    headers: { 'content-length': 'x' },
  });
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonx',
    '*/*',
    'json',
  ])
    yield probe(`the type ${type}`, { raw: valid, headers: { 'content-type': type } }, false);
  for (const type of ['application/json; charset=utf-16', 'APPLICATION/JSON', 'application/merge-patch+json'])
    yield probe(`the type ${type}`, { raw: valid, headers: { 'content-type': type } });
  if (!isWanted) yield probe('an unexpected body', { raw: '{}' }, false);
}

function streamOf(text: string): ReadableStream {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + 65_536));
      at += 65_536;
    },
  });
}

const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { 'x-forwarded-for': `${canary}, 10.0.0.1` },
  { 'x-forwarded-for': ','.repeat(5000) },
  { 'x-forwarded-for': '\u00e4\u00ff' },
  { 'x-http-method-override': 'DELETE' },
  { 'content-encoding': 'gzip' },
  { accept: 'text/html' },
  { range: 'bytes=0-1' },
  { 'if-match': '"x"', 'if-none-match': '*' },
  { prefer: 'return=minimal' },
  { cookie: 'a='.repeat(2000) },
  { 'x-request-id': canary },
];

function* headerProbes(example: Example): Generator<Sent> {
  const { operation } = example;
  const { path, ask } = plain(example);
  for (const headers of HEADERS) {
    const what = `the header ${JSON.stringify(headers).slice(0, 60)}`;
    yield { what, operation, isValid: undefined, path, ask: { ...ask, headers } };
  }
}
