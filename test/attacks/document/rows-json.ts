// texts that two JSON parsers read differently, documents that are too large, and documents of which only
// one part is valid.
import { type DocumentRow, refusedRow } from './document-script.ts';

const JSON_INVALID = ['json_invalid'] as const;
const text = (id: DocumentRow['id'], ...pieces: DocumentRow['script']['text']): DocumentRow => ({
  id,
  script: { text: pieces },
  expect: { issues: JSON_INVALID },
});
const HEADERS = '"headers":[{"name":"X-Key","type":"plaintext","value":"canary"}]';
const RULE = `{"match_hosts":["api.test"],${HEADERS}}`;

const readingRows: readonly DocumentRow[] = [
  text('A-04 name-twice', `{"rules":[],"rules":[${RULE}]}`),
  text('A-04 name-twice-by-escape', `{"rules":[],"\\u0072ules":[${RULE}]}`),
  text(
    'A-04 name-twice-deep',
    `{"rules":[{"match_hosts":["api.test"],"match_hosts":["evil.test"],${HEADERS}}]}`,
  ),
  text(
    'A-04 name-twice-in-a-header',
    '{"rules":[{"match_hosts":["api.test"],"headers":[{"name":"X-A","type":"plaintext","value":"v","value":"canary"}]}]}',
  ),
  text('A-04 proto-twice', '{"__proto__":{"rules":[]},"__proto__":null}'),
  text('A-04 trailing-comma', `{"rules":[${RULE},]}`),
  text('A-04 comment', '{"rules":[] /* canary */}'),
  text('A-04 line-comment', '{"rules":[]} // canary'),
  text('A-04 single-quotes', "{'rules':['canary']}"),
  text('A-04 bare-name', '{rules:[]}'),
  text('A-04 hex-number', '{"callbacks":[{"ttl_seconds":0x3c}]}'),
  text('A-04 octal-number', '{"callbacks":[{"ttl_seconds":060}]}'),
  text('A-04 plus-number', '{"callbacks":[{"ttl_seconds":+60}]}'),
  text('A-04 nan', '{"callbacks":[{"ttl_seconds":NaN}]}'),
  text('A-04 undefined', '{"rules":undefined}'),
  text('A-04 raw-control-in-a-string', '{"no_proxy":["a\u0001b"]}'),
  text('A-04 raw-newline-in-a-string', '{"no_proxy":["a\nb"]}'),
  text('A-04 bad-escape', '{"no_proxy":["\\x61"]}'),
  text('A-04 half-an-escape', '{"no_proxy":["\\u12"]}'),
  text('A-04 cut-short', `{"rules":[${RULE}`),
  text('A-04 two-documents', '{}{"rules":[]}'),
  text('A-04 text-after', '{"rules":[]}canary'),
  text('A-04 byte-order-mark', '\ufeff{"rules":[]}'),
  text('A-04 yaml', 'rules: []\n'),
  text('A-04 empty', ''),
  text('A-04 blanks', ' \r\n\t'),
  text('A-04 vertical-tab-for-a-blank', '{"rules":\u000b[]}'),
  text('A-04 nested-beyond-the-reader', '{"rules":', ['[', 32], [']', 32], '}'),
  text('A-04 nested-ten-thousand', ['[', 10_000], [']', 10_000]),
  text('A-04 nested-objects-ten-thousand', ['{"a":', 10_000], '1', ['}', 10_000]),
  text('A-04 opened-and-never-closed', ['[', 200_000]),
];

const raw = (
  id: DocumentRow['id'],
  pieces: DocumentRow['script']['text'],
  ...issues: readonly string[]
): DocumentRow => ({
  id,
  script: { text: pieces },
  expect: { issues },
});

const shapeRows: readonly DocumentRow[] = [
  raw('A-04 proto-at-the-top', [`{"__proto__":{"rules":[${RULE}]}}`], '__proto__ extra_forbidden'),
  raw(
    'A-04 proto-in-a-rule',
    [`{"rules":[{"__proto__":{"enabled":true},"match_hosts":["api.test"],${HEADERS}}]}`],
    'rules.0.__proto__ extra_forbidden',
  ),
  raw(
    'A-04 proto-in-a-header',
    [
      '{"rules":[{"match_hosts":["api.test"],"headers":[{"__proto__":{"value":"canary"},"name":"X-Key","type":"plaintext"}]}]}',
    ],
    'rules.0.headers.0.__proto__ extra_forbidden',
  ),
  raw(
    'A-04 proto-as-a-variable',
    [`{"rules":[{"env_vars":{"__proto__":"canary"},"match_hosts":["api.test"],${HEADERS}}]}`],
    'rules.0.env_vars.__proto__ extra_forbidden',
  ),
  raw(
    'A-04 constructor-at-the-top',
    ['{"constructor":{"prototype":{"enabled":true}}}'],
    'constructor extra_forbidden',
  ),
  raw(
    'A-04 constructor-in-a-rule',
    [`{"rules":[{"constructor":{"prototype":{"isAdmin":true}},"match_hosts":["api.test"],${HEADERS}}]}`],
    'rules.0.constructor extra_forbidden',
  ),
  raw(
    'A-04 tostring-and-valueof',
    ['{"toString":"canary","valueOf":"canary","hasOwnProperty":1}'],
    'toString extra_forbidden',
    'valueOf extra_forbidden',
    'hasOwnProperty extra_forbidden',
  ),
  raw('A-04 key-in-capitals', [`{"Rules":[${RULE}]}`], 'Rules extra_forbidden'),
  raw('A-04 key-with-a-blank', [`{"rules ":[${RULE}]}`], 'rules  extra_forbidden'),
  raw('A-04 key-with-a-nul', ['{"rules\\u0000":[]}'], 'rules\u0000 extra_forbidden'),
  raw('A-04 empty-key', ['{"":1}'], 'extra_forbidden'),
  raw('A-04 long-key', ['{"', ['k', 5_000], '":1}'], 'kkkkkkkk… extra_forbidden'),
  raw('A-04 lone-surrogate', ['{"no_proxy":["\\ud800.test"]}'], 'no_proxy.0 string_unicode'),
  raw(
    'A-04 lone-low-surrogate-in-a-value',
    [
      '{"rules":[{"match_hosts":["api.test"],"headers":[{"name":"X-Key","type":"opaque","value":"canary\\udc00"}]}]}',
    ],
    'rules.0.headers.0.value string_unicode',
  ),
  raw('A-04 lone-surrogate-in-a-key', ['{"a\\ud83d":1}'], 'a\ufffd extra_forbidden'),
  raw(
    'A-04 nested-beyond-the-document',
    ['{"rules":', ['[', 20], [']', 20], '}'],
    'rules.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0 value_error',
  ),
  raw('A-04 a-list-of-1001-rules', ['{"rules":[', [`${RULE},`, 1_000], RULE, ']}'], 'rules too_long'),
  raw('A-04 a-list-of-ten-thousand-nulls', ['{"rules":[', ['null,', 9_999], 'null]}'], 'rules too_long'),
  raw(
    'A-04 more-values-than-a-document-has',
    [
      '{"rules":[',
      ['[', 1],
      ...Array.from({ length: 80 }, () => [['[', 1], ['1,', 999], '1],'] as const).flat(),
      '1]]}',
    ],
    'too_long',
  ),
  raw(
    'A-04 ten-thousand-hosts',
    ['{"rules":[', ['{"match_hosts":[', 1], ['"api.test",', 1_000], '"api.test"]}]}'],
    'rules.0.match_hosts too_long',
  ),
  raw(
    'A-04 a-hundred-and-one-unknown-keys',
    ['{', Array.from({ length: 101 }, (_, i) => `"k${i}":1`).join(','), '}'],
    ...Array.from({ length: 100 }, (_, i) => `k${i} extra_forbidden`),
    'too_many_issues',
  ),
  raw(
    'A-04 numeric-keys-in-any-order',
    ['{"2":1,"1":1,"0":1}'],
    '0 extra_forbidden',
    '1 extra_forbidden',
    '2 extra_forbidden',
  ),
];

const rules = (count: number, odd: Readonly<Record<number, object>>): unknown =>
  Array.from({ length: count }, (_, i) => ({
    match_hosts: [`h${i}.test`],
    headers: [{ name: 'X-Key', type: 'plaintext', value: `v${i}` }],
    ...odd[i],
  }));
const partRows: readonly DocumentRow[] = [
  refusedRow('A-08 rule-37-of-40', { rules: rules(40, { 36: { match_hosts: ['*'] } }) }, [
    'rules.36.match_hosts.0 value_error',
  ]),
  refusedRow('A-08 the-last-of-40', { rules: rules(40, { 39: { surprise: 1 } }) }, [
    'rules.39.surprise extra_forbidden',
  ]),
  refusedRow(
    'A-08 a-secret-that-is-missing-after-39',
    {
      rules: rules(40, {
        39: { headers: [{ name: 'X-Key', type: 'workspace_secret', value: '{MISSING}' }] },
      }),
    },
    [],
    ['rules.39.headers.0.value value_error'],
  ),
  refusedRow(
    'A-08 sound-rules-and-a-bad-callback',
    { rules: rules(3, {}), callbacks: [{ match_hosts: ['c.test'], url: 'ftp://c.test/', ttl_seconds: 60 }] },
    ['callbacks.0.url value_error'],
  ),
  refusedRow(
    'A-08 sound-rules-and-a-bad-list',
    { rules: rules(3, {}), access_control: { allow_list: ['h0.test'], deny_list: [] } },
    ['access_control value_error'],
  ),
  refusedRow(
    'A-08 a-rule-that-the-list-forbids',
    { rules: rules(3, {}), access_control: { allow_list: ['h0.test', 'h2.test'] } },
    ['rules.1.match_hosts.0 value_error'],
  ),
  refusedRow(
    'A-08 a-rule-that-the-deny-list-covers',
    { rules: rules(3, {}), access_control: { deny_list: ['*.test'] } },
    [
      'rules.0.match_hosts.0 value_error',
      'rules.1.match_hosts.0 value_error',
      'rules.2.match_hosts.0 value_error',
    ],
  ),
  refusedRow(
    'A-08 a-callback-that-the-list-forbids',
    {
      callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60 }],
      access_control: { deny_list: ['c.test'] },
    },
    ['callbacks.0.match_hosts.0 value_error'],
  ),
  refusedRow(
    'A-08 every-issue-at-once',
    {
      rules: rules(5, { 1: { match_hosts: [] }, 3: { headers: [] } }),
      callbacks: [{}],
      no_proxy: ['*'],
      extra: 1,
    },
    [
      'rules.1.match_hosts too_short',
      'rules.3.headers too_short',
      'callbacks.0.match_hosts missing',
      'callbacks.0.url missing',
      'callbacks.0.ttl_seconds missing',
      'no_proxy.0 value_error',
      'extra extra_forbidden',
    ],
  ),
  refusedRow('A-08 a-rule-of-the-future', { rules: rules(2, { 1: { type: 'aws' } }) }, [
    'rules.1.type value_error',
  ]),
  refusedRow(
    'A-08 a-callback-of-the-future',
    {
      rules: rules(1, {}),
      callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60, full_request: true }],
    },
    ['callbacks.0.full_request value_error'],
  ),
];

export const jsonRows: readonly DocumentRow[] = [...readingRows, ...shapeRows, ...partRows];
