// P-13, P-17: syntax of globs, regular expressions and NO_PROXY that a host pattern does not support. Modelled on
// smokescreen's glob tests (github.com/stripe/smokescreen, MIT); the patterns are our own.
import { type DocumentRow, refusedRow, takenRow } from './document-script.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
const rule = (...match_hosts: readonly unknown[]): unknown => ({ rules: [{ match_hosts, headers }] });
const PLACE = 'rules.0.match_hosts.0 value_error';

const PATTERNS: readonly (readonly [name: string, pattern: string])[] = [
  ['every-host', '*'],
  ['globstar', '**'],
  ['every-host-one-port', '*:443'],
  ['globstar-label', '**.good.test'],
  ['two-star-labels', '*.*.test'],
  ['star-in-the-middle', 'api.*.test'],
  ['star-at-the-end', 'good.*'],
  ['star-before-text', '*good.test'],
  ['star-after-text', 'api*.good.test'],
  ['star-alone-after-dot', '*.'],
  ['bare-suffix', '.good.test'],
  ['only-a-dot', '.'],
  ['empty-label', 'a..test'],
  ['empty', ''],
  ['negation', '!evil.test'],
  ['braces', '{api,www}.good.test'],
  ['brace-range', 'api{1..9}.test'],
  ['extglob-at', '@(api|www).good.test'],
  ['extglob-plus', '+(a).good.test'],
  ['extglob-star', '*(*(*(a|b))).test'],
  ['extglob-not', '!(evil).test'],
  ['question-mark', 'ap?.good.test'],
  ['class', '[a-z]pi.good.test'],
  ['posix-class', '[[:alpha:]].test'],
  ['regular-expression', '^api\\.good\\.test$'],
  ['slashed-expression', '/^api/'],
  ['escaped-star', '\\*.good.test'],
  ['encoded-star', '%2a.good.test'],
  ['encoded-dot', 'api%2egood.test'],
  ['scheme', 'https://api.good.test'],
  ['scheme-relative', '//api.good.test'],
  ['path', 'api.good.test/v1'],
  ['userinfo', 'x@api.good.test'],
  ['two-hosts', 'a.test,b.test'],
  ['two-hosts-by-blank', 'a.test b.test'],
  ['blank-in-front', ' api.test'],
  ['line-end', 'api.test\n'],
  ['second-line', 'safe.test\n*.test'],
  ['nul', 'api\u0000.test'],
  ['port-zero', 'api.test:0'],
  ['port-star', 'api.test:*'],
  ['port-range', 'api.test:80-90'],
  ['port-beyond', 'api.test:65536'],
  ['two-ports', 'api.test:80:81'],
  ['bare-v6', '2001:db8::7'],
  ['v6-with-zone', '[fe80::1%eth0]'],
  ['v6-unclosed', '[::1'],
  ['wildcard-before-address', '*.10.0.0.1'],
  ['short-address', '127.1'],
  ['range-of-addresses', '10.0.0.0/8'],
  ['unicode', 'b\u00fccher.test'],
  ['fullwidth', '\uff41pi.test'],
  ['unicode-dot', 'api\u3002test'],
  ['zero-width', 'api\u200b.test'],
  ['long-label', `${'a'.repeat(64)}.test`],
  ['wildcard-over-a-country', '*.uk'],
  ['wildcard-over-com', '*.com'],
  ['wildcard-over-co-uk', '*.co.uk'],
  ['wildcard-over-a-private-suffix', '*.github.io'],
  ['wildcard-over-a-private-suffix-in-capitals', '*.GitHub.IO'],
  ['wildcard-over-a-suffix-with-a-dot', '*.com.'],
  ['wildcard-over-a-suffix-with-a-port', '*.com:443'],
  ['wildcard-over-the-parent-of-a-star', '*.kobe.jp'],
];

const globRows: readonly DocumentRow[] = [
  ...PATTERNS.map(([name, pattern]) => refusedRow(`P-13 ${name}`, rule(pattern), [PLACE])),
  refusedRow('P-13 second-of-two', rule('good.test', '*'), ['rules.0.match_hosts.1 value_error']),
  refusedRow('P-13 no-host-at-all', rule(), ['rules.0.match_hosts too_short']),
  refusedRow('P-13 beyond-a-name', rule(`${'a.'.repeat(150)}test`), [
    'rules.0.match_hosts.0 string_too_long',
  ]),
  refusedRow('P-13 in-a-disabled-rule', { rules: [{ enabled: false, match_hosts: ['*.com'], headers }] }, [
    PLACE,
  ]),
  refusedRow(
    'P-13 in-a-callback',
    { callbacks: [{ match_hosts: ['**'], url: 'https://cb.test/', ttl_seconds: 60 }] },
    ['callbacks.0.match_hosts.0 value_error'],
  ),
  refusedRow('P-13 in-a-deny-list', { access_control: { deny_list: ['*'] } }, [
    'access_control.deny_list.0 value_error',
  ]),
  takenRow('P-13 one-label-any-depth-never-the-apex', rule('*.good.test'), {
    ask: [
      ['a.good.test', '/'],
      ['b.a.good.test', '/'],
      ['good.test', '/'],
      ['other.test', '/'],
    ],
    arrived: [['X-Key: one'], ['X-Key: one'], [], []],
  }),
  takenRow('P-13 capitals-and-a-dot-are-spellings', rule('*.GOOD.Test.'), {
    ask: [
      ['a.good.test', '/'],
      ['good.test', '/'],
    ],
    arrived: [['X-Key: one'], []],
  }),
];

const paths = (...match_paths: readonly string[]): unknown => ({
  rules: [{ match_hosts: ['api.test'], match_paths, headers }],
});
const PATH_PLACE = 'rules.0.match_paths.0 value_error';
/** Patterns that make other matchers backtrack; here a pattern has few stars between literals, or it is invalid. */
const PATHS: readonly (readonly [name: string, pattern: string])[] = [
  ['picomatch-nested-extglob', '/*(*(*(a|b)))'],
  ['globstars-in-a-row', `/${'**/'.repeat(30)}x`],
  ['nine-stars', `/${'a*'.repeat(9)}b`],
  ['hundred-stars', `/${'*'.repeat(100)}b`],
  ['brace-bomb', '/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}'],
  ['numeric-range', '/{1..1000000000}'],
  ['beyond-its-bytes', `/${'a'.repeat(256)}`],
  ['class', '/[a-z]*'],
  ['look-ahead', '/(?=(a+))a*b'],
];
const redosRows: readonly DocumentRow[] = [
  ...PATHS.map(([name, pattern]) => refusedRow(`P-15 ${name}`, paths(pattern), [PATH_PLACE])),
  refusedRow('P-15 too-many-that-search', paths(...Array.from({ length: 11 }, (_, i) => `/x${i}*a*`)), [
    'rules too_long',
  ]),
  refusedRow(
    'P-15 too-many-that-look',
    {
      rules: Array.from({ length: 11 }, (_, i) => ({
        match_hosts: [`h${i}.test`],
        match_paths: Array.from({ length: 91 }, (_, j) => `/r${j}/*/x`),
        headers,
      })),
    },
    ['rules too_long'],
  ),
];

const literalRows: readonly DocumentRow[] = [
  takenRow('P-15 minimatch-nested-plus-is-text', paths('/+(+(+(a)))b'), {
    ask: [
      ['api.test', '/aaab'],
      ['api.test', '/+(+(+(a)))b'],
    ],
    arrived: [[], ['X-Key: one']],
  }),
  takenRow('P-15 nested-quantifiers-are-text', paths('/(a+)+$'), {
    ask: [
      ['api.test', '/aaaa'],
      ['api.test', '/(a+)+$'],
    ],
    arrived: [[], ['X-Key: one']],
  }),
];

const noProxy = (entry: string): unknown => ({ ...(rule('api.test') as object), no_proxy: [entry] });
const OVERLAP = { warnings: ['no_proxy.0 no_proxy_overlap'] } as const;
const toApiTest = [['api.test', '/']] as const;
const holeRows: readonly DocumentRow[] = [
  ...(
    [
      ['every-host', '*'],
      ['every-host-as-go-has-it', '*:443'],
      ['comma-list', 'api.test,other.test'],
      ['url', 'http://api.test'],
      ['bracket-unclosed', '[::1'],
      ['middle-star', 'api.*'],
      ['star-without-dot', '*api.test'],
      ['regular-expression', '.*\\.test'],
      ['short-range', '10/8'],
      ['range-with-host-bits', '10.0.0.1/8'],
      ['range-beyond', '10.0.0.0/33'],
      ['blank-list', 'a.test b.test'],
      ['local', '<local>'],
      ['empty', ''],
    ] as const
  ).map(([name, entry]) => refusedRow(`P-17 ${name}`, { no_proxy: [entry] }, ['no_proxy.0 value_error'])),
  takenRow('P-17 the-very-host-is-a-warning-and-wins', noProxy('api.test'), {
    ask: toApiTest,
    arrived: [[]],
    ...OVERLAP,
  }),
  takenRow('P-17 in-capitals', noProxy('API.TEST'), { ask: toApiTest, arrived: [[]], ...OVERLAP }),
  takenRow('P-17 a-suffix-with-a-dot', noProxy('.test'), { ask: toApiTest, arrived: [[]], ...OVERLAP }),
  takenRow('P-17 a-suffix-with-a-star', noProxy('*.test'), { ask: toApiTest, arrived: [[]], ...OVERLAP }),
  takenRow('P-17 a-bare-suffix-is-only-a-name', noProxy('test'), {
    ask: toApiTest,
    arrived: [['X-Key: one']],
  }),
  takenRow('P-17 the-end-of-a-name-is-no-suffix', noProxy('pi.test'), {
    ask: toApiTest,
    arrived: [['X-Key: one']],
  }),
  takenRow('P-17 another-port', noProxy('api.test:1'), {
    ask: toApiTest,
    arrived: [['X-Key: one']],
    ...OVERLAP,
  }),
  takenRow('P-17 every-address-is-not-a-name', noProxy('0.0.0.0/0'), {
    ask: toApiTest,
    arrived: [['X-Key: one']],
  }),
  takenRow('P-17 every-v6-address-is-not-a-name', noProxy('::/0'), {
    ask: toApiTest,
    arrived: [['X-Key: one']],
  }),
  takenRow(
    'P-17 inside-a-rule-of-another-host',
    {
      rules: [
        { match_hosts: ['other.test'], headers, no_proxy: ['api.test'] },
        { match_hosts: ['api.test'], headers },
      ],
    },
    { ask: toApiTest, arrived: [[]], warnings: ['rules.0.no_proxy.0 no_proxy_overlap'] },
  ),
  takenRow(
    'P-17 inside-a-disabled-rule',
    {
      rules: [
        { enabled: false, match_hosts: ['other.test'], headers, no_proxy: ['api.test'] },
        { match_hosts: ['api.test'], headers },
      ],
    },
    { ask: toApiTest, arrived: [['X-Key: one']] },
  ),
  takenRow(
    'P-17 does-not-pass-a-deny-list',
    { no_proxy: ['other.test'], access_control: { deny_list: ['other.test'] } },
    { ask: [['other.test', '/']], arrived: [['refused']] },
  ),
];

export const hostRows: readonly DocumentRow[] = [...globRows, ...redosRows, ...literalRows, ...holeRows];
