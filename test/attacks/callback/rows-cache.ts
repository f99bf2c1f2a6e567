// C-05, C-06, C-08 and C-09: which requests a cached result serves, for how long, and how many calls concurrent requests cause.
import { GOOD, failing, refusedDocument, reply } from './row-shapes.ts';
import type { CallbackPlay, CallbackRow, CallbackStep } from './callback-script.ts';

type CallOutcome = {
  readonly outcomes: readonly string[];
  readonly calls: number;
  readonly callBodies?: readonly string[];
};
const row = (
  id: CallbackRow['id'],
  play: readonly CallbackPlay[],
  expect: CallOutcome,
  entry?: object,
): CallbackRow => ({
  id,
  script: { play, ...(entry ? { entry: { ...entry } } : {}) },
  expect,
});
const ask = (to?: string, fields?: readonly string[]): CallbackPlay => ({
  ask: 1,
  ...(to === undefined ? {} : { to }),
  ...(fields ? { fields } : {}),
});
const requestsTo = (
  id: CallbackRow['id'],
  hosts: readonly string[],
  outcomes: readonly string[],
): CallbackRow =>
  row(
    id,
    hosts.map((host) => ask(host)),
    { outcomes, calls: new Set(outcomes).size },
  );

/** All spellings of a host have one cache key; every other host or port has another. */
const keys: readonly CallbackRow[] = [
  requestsTo('C-05 host-in-capitals', ['api.test', 'API.TEST'], ['call-1', 'call-1']),
  requestsTo('C-05 capitals-first', ['Api.Test', 'api.test'], ['call-1', 'call-1']),
  requestsTo('C-05 trailing-dot', ['api.test', 'api.test.'], ['call-1', 'call-1']),
  requestsTo('C-05 trailing-dot-and-capitals', ['API.test.', 'api.TEST'], ['call-1', 'call-1']),
  requestsTo(
    'C-05 two-hosts-of-one-wildcard',
    ['h0.api.test', 'h1.api.test', 'h0.api.test'],
    ['call-1', 'call-2', 'call-1'],
  ),
  requestsTo(
    'C-05 host-and-its-wildcard',
    ['api.test', 'h0.api.test', 'api.test'],
    ['call-1', 'call-2', 'call-1'],
  ),
  row('C-05 two-ports', [ask('api.test:{ORIGIN}'), ask('api.test:1'), ask()], {
    outcomes: ['call-1', 'upstream_unreachable', 'call-1'],
    calls: 2,
  }),
  row('C-05 port-with-the-same-prefix', [ask('api.test:44'), ask('api.test:443'), ask('api.test:44')], {
    outcomes: ['upstream_unreachable', 'upstream_unreachable', 'upstream_unreachable'],
    calls: 2,
    callBodies: ['{"host":"api.test","port":44}', '{"host":"api.test","port":443}'],
  }),
  row(
    'C-05 request-fields-are-not-in-the-key',
    [ask(undefined, ['Vary: *', 'Cache-Control: no-cache', 'Authorization: mine']), ask()],
    { outcomes: ['call-1', 'call-1'], calls: 1 },
  ),
  row(
    'C-05 another-entry',
    [ask(), { apply: { callbacks: [{ name: 'other' }, { match_hosts: ['unused.test'] }] } }, ask()],
    { outcomes: ['call-1', 'call-2'], calls: 2 },
  ),
  row('C-05 another-revision-of-the-same', [ask(), { apply: { callbacks: [{}] } }, ask(), ask()], {
    outcomes: ['call-1', 'call-2', 'call-2'],
    calls: 2,
  }),
  row(
    'C-05 another-secret-for-the-endpoint',
    [ask(), { apply: { callbacks: [{ request_headers: [] }] } }, ask()],
    { outcomes: ['call-1', 'call-2'], calls: 2 },
    { request_headers: [{ name: 'X-Team', type: 'plaintext', value: 'one' }] },
  ),
  row(
    'C-05 another-index',
    [ask(), { apply: { callbacks: [{ match_hosts: ['*.other.test'] }, {}] } }, ask()],
    { outcomes: ['call-1', 'call-2'], calls: 2 },
  ),
  row(
    'C-05 first-of-two-entries',
    [
      { apply: { callbacks: [{ match_hosts: ['api.test'] }, { match_hosts: ['*.api.test'] }] } },
      ask(),
      ask('h0.api.test'),
      ask(),
    ],
    { outcomes: ['call-1', 'call-2', 'call-1'], calls: 2 },
  ),
];

const noStore: CallbackRow = {
  id: 'C-05 response-with-cache-fields',
  script: {
    responses: [[{ send: reply('200 OK', ['Cache-Control: max-age=1', 'Age: 9', 'Vary: *'], GOOD) }]],
    play: [ask(), { advanceMs: 59_000 }, ask()],
  },
  expect: { outcomes: ['call-1', 'call-1'], calls: 1 },
};

const FORGED_BODY = '{"headers":{"Authorization":"forged"}}';
const FORGED = `HTTP/1.1 200 OK\r\nContent-Length: ${FORGED_BODY.length}\r\n\r\n${FORGED_BODY}`;

/** Bytes after a response belong to no call: the next call, for another host, must not read them. */
const poison = (name: string, steps: readonly CallbackStep[], first: string): CallbackRow => ({
  id: `C-05 response-for-the-next-call-${name}`,
  script: { responses: [steps], play: [ask(), ask('h0.api.test'), ask('h0.api.test')] },
  expect: { outcomes: [first, 'call-2', 'call-2'], calls: 2 },
});

const poisoned: readonly CallbackRow[] = [
  poison('after-a-failure', [{ send: `HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n${FORGED}` }], 'failed'),
  poison('after-no-content', [{ send: `HTTP/1.1 204 No Content\r\n\r\n${FORGED}` }], 'failed'),
  poison(
    'after-the-last-chunk',
    [{ send: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${FORGED}` }],
    'failed',
  ),
  poison(
    'cut-short',
    [{ send: `HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n${FORGED.slice(0, 30)}` }],
    'failed',
  ),
];

const times = (count: number, outcome: string): readonly string[] =>
  Array.from({ length: count }, () => outcome);
const held = (
  id: CallbackRow['id'],
  responses: CallbackRow['script']['responses'],
  play: readonly CallbackPlay[],
  expect: CallOutcome,
): CallbackRow => ({
  id,
  script: { ...(responses ? { responses } : {}), play },
  expect,
});
const hold = ['hold', { send: reply('200 OK', [], GOOD) }] as const;

const stampedes: readonly CallbackRow[] = [
  held('C-06 twenty-at-once', [hold], [{ start: 20 }, { called: 1 }, 'release', 'settle'], {
    outcomes: times(20, 'call-1'),
    calls: 1,
  }),
  held(
    'C-06 twenty-at-once-and-one-later',
    [hold],
    [{ start: 20 }, { called: 1 }, 'release', 'settle', ask()],
    { outcomes: times(21, 'call-1'), calls: 1 },
  ),
  held(
    'C-06 ten-at-once-that-fail',
    [['hold', { send: reply('500 No', [], GOOD) }]],
    [{ start: 10 }, { called: 1 }, 'release', 'settle', ask()],
    { outcomes: [...times(10, 'failed'), 'call-2'], calls: 2 },
  ),
  held(
    'C-06 ten-at-once-that-are-reset',
    [['hold', 'reset']],
    [{ start: 10 }, { called: 1 }, 'release', 'settle', ask()],
    { outcomes: [...times(10, 'failed'), 'call-2'], calls: 2 },
  ),
  held(
    'C-06 ten-at-once-and-a-cut-body',
    [['hold', { send: `HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n${GOOD}` }, 'end']],
    [{ start: 10 }, { called: 1 }, 'release', 'settle', ask()],
    { outcomes: [...times(10, 'failed'), 'call-2'], calls: 2 },
  ),
  held(
    'C-06 two-hosts-at-once',
    [hold, hold],
    [{ start: 5 }, { start: 5, to: 'h0.api.test' }, { called: 2 }, 'release', 'settle'],
    { outcomes: [...times(5, 'call-1'), ...times(5, 'call-2')], calls: 2 },
  ),
  held(
    'C-06 the-first-disconnects',
    [hold],
    [{ start: 3 }, { called: 1 }, 'abandon', 'release', 'settle', ask()],
    { outcomes: ['gone', 'call-1', 'call-1', 'call-1'], calls: 1 },
  ),
  held(
    'C-06 the-only-one-disconnects',
    [hold],
    [{ start: 1 }, { called: 1 }, 'abandon', { start: 1 }, 'release', 'settle'],
    { outcomes: ['gone', 'call-1'], calls: 1 },
  ),
  held(
    'C-06 after-the-cached-result-expired',
    [[{ send: reply('200 OK', [], GOOD) }], hold],
    [ask(), { advanceMs: 60_000 }, { start: 12 }, { called: 2 }, 'release', 'settle'],
    { outcomes: ['call-1', ...times(12, 'call-2')], calls: 2 },
  ),
  held(
    'C-06 spellings-at-once',
    [hold],
    [
      { start: 2 },
      { start: 2, to: 'API.test' },
      { start: 2, to: 'api.TEST.' },
      { called: 1 },
      'release',
      'settle',
    ],
    { outcomes: times(6, 'call-1'), calls: 1 },
  ),
];

const clock = (
  name: string,
  ttl: number,
  advances: readonly number[],
  outcomes: readonly string[],
): CallbackRow =>
  row(
    `C-08 ${name}`,
    [ask(), ...advances.flatMap((advanceMs): CallbackPlay[] => [{ advanceMs }, ask()])],
    { outcomes, calls: new Set(outcomes).size },
    { ttl_seconds: ttl },
  );

const ttls: readonly (readonly [name: string, value: unknown])[] = [
  ['fifty-nine', 59],
  ['three-thousand-six-hundred-and-one', 3_601],
  ['zero', 0],
  ['negative', -60],
  ['a-fraction', 60.5],
  ['nearly-sixty', 59.999_999_999],
  ['text', '60'],
  ['text-of-an-exponent', '6e1'],
  ['null', null],
  ['true', true],
  ['a-list', [60]],
  ['an-object', { seconds: 60 }],
  ['beyond-integers', 2 ** 53],
  ['a-duration', 'PT60S'],
  ['milliseconds', 60_000],
];

const lifetimes: readonly CallbackRow[] = [
  ...ttls.map(([name, value]) => refusedDocument(`C-08 ttl-${name}`, { ttl_seconds: value }, 'ttl_seconds')),
  clock('a-millisecond-before-the-end', 60, [59_999], ['call-1', 'call-1']),
  clock('at-the-end', 60, [60_000], ['call-1', 'call-2']),
  clock('a-fraction-before-the-end', 60, [59_999.5, 0.5], ['call-1', 'call-1', 'call-2']),
  clock('use-does-not-lengthen-it', 60, [30_000, 29_999, 1], ['call-1', 'call-1', 'call-1', 'call-2']),
  clock('an-hour', 3_600, [3_599_999, 1], ['call-1', 'call-1', 'call-2']),
  clock('ten-days-at-once', 60, [864_000_000, 0], ['call-1', 'call-2', 'call-2']),
  clock('no-time-at-all', 60, [0, 0], ['call-1', 'call-1', 'call-1']),
  clock('an-exponent-is-a-number', Number('1e3'), [999_999, 1], ['call-1', 'call-1', 'call-2']),
];

const sprays: readonly CallbackRow[] = [
  held(
    'C-09 seventy-hosts-at-once',
    Array.from({ length: 64 }, () => hold),
    [{ spray: 70 }, { called: 64 }, 'release', 'settle'],
    { outcomes: [...times(64, 'served'), ...times(6, 'failed')], calls: 64 },
  ),
  held('C-09 thirty-hosts-one-call-each', [], [{ spray: 30 }, 'settle', { spray: 30 }, 'settle'], {
    outcomes: times(60, 'served'),
    calls: 30,
  }),
  held(
    'C-09 twenty-spellings-of-one-host',
    [],
    Array.from({ length: 20 }, (_, i) =>
      ask(
        [...'api.test'].map((letter, at) => ((i >> (at % 5)) & 1 ? letter.toUpperCase() : letter)).join(''),
      ),
    ),
    { outcomes: times(20, 'call-1'), calls: 1 },
  ),
  held('C-09 twenty-paths-of-one-host', [], [{ ask: 20 }], { outcomes: times(20, 'call-1'), calls: 1 }),
  held(
    'C-09 ten-ports-of-one-host',
    [],
    Array.from({ length: 10 }, (_, i) => ask(`api.test:${i + 1}`)),
    { outcomes: times(10, 'upstream_unreachable'), calls: 10 },
  ),
  row(
    'C-09 a-host-without-an-entry',
    [ask('evil-api.test:1'), ask('apixtest:1'), ask('api.test.evil.test:1')],
    { outcomes: ['refused', 'refused', 'refused'], calls: 0 },
  ),
];

export const cacheRows: readonly CallbackRow[] = [
  ...keys,
  ...poisoned,
  noStore,
  ...stampedes,
  ...lifetimes,
  ...sprays,
  failing(
    'C-09 response-of-sixteen-kibibytes-is-bounded',
    [{ headers: { 'X-A': 'x'.repeat(8_000), 'X-B': 'x'.repeat(8_192), 'X-C': 'x'.repeat(193) } }],
    'status 200, application/json: the values together have more than 16384 bytes',
  ),
];
