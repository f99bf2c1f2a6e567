// P-01 to P-07, P-10: paths that two hops read differently, with a rule on paths: `/v1/*` has a credential, the rest of the
// host has none. An unambiguous path is sent byte for byte; an ambiguous one is refused, and the connection stays open.
import {
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  malformed,
  request,
  rowsOf,
} from './message-script.ts';
import type { PolicyName } from './message-policies.ts';

export const ambiguous: MessageExpectation = {
  arrivals: [],
  responses: [{ status: 400, code: 'ambiguous_path' }],
};

/** The path arrives unchanged, with the credential. */
export function injected(path: string): MessageExpectation {
  return accepted(arrival(`GET ${path}`));
}

/** The path arrives unchanged, without the credential. */
export function bare(path: string): MessageExpectation {
  const head = [`GET ${path} HTTP/1.1`, 'Host: {HOST}'];
  const arrived = accepted({ head, body: '', framing: 'none' });
  return { ...arrived, records: ['forwarded no_path_match'] };
}

/** `[name, path]`, all with the same outcome. */
export function paths(
  classId: string,
  rows: readonly (readonly [name: string, path: string])[],
  expect: MessageExpectation | ((path: string) => MessageExpectation),
  policy: PolicyName = 'paths',
): readonly MessageRow[] {
  const table = rows.map(
    ([name, path]) =>
      [name, request(`GET ${path}`), typeof expect === 'function' ? expect(path) : expect] as const,
  );
  return rowsOf(classId, table, { policy });
}

const dotSegments = [
  ...paths(
    'P-01',
    [
      ['out-of-the-rule', '/v1/../admin'],
      ['out-and-in-again', '/v1/../v1/x'],
      ['over-a-dot', '/v1/./../admin'],
      ['dot', '/v1/./x'],
      ['dot-at-the-end', '/v1/.'],
      ['dots-at-the-end', '/v1/..'],
      ['dots-before-a-query', '/v1/..?q'],
      ['above-the-root', '/../v1/x'],
      ['above-the-root-often', '/v1/../../../../etc/passwd'],
      ['dot-first', '/./v1/x'],
      ['dots-alone', '/..'],
      ['dots-between-slashes', '/v1//..//admin'],
      ['into-the-rule', '/admin/../v1/x'],
      ['after-a-deep-path', '/v1/a/b/../../../admin'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-01',
    [
      ['three-dots', '/v1/.../x'],
      ['dots-in-a-name', '/v1/a..b'],
      ['dots-before-a-name', '/v1/..a'],
      ['dots-after-a-name', '/v1/a../x'],
      ['hidden-file', '/v1/.git/config'],
    ],
    injected,
  ),
  // One rule for every path: all paths are equal, and the checked path is sent.
  ...paths(
    'P-01',
    [
      ['where-all-paths-are-one', '/v1/../admin'],
      ['dot-where-all-paths-are-one', '/./%2e%2e/x'],
    ],
    injected,
    'bearer',
  ),
];

const encodedDots = [
  ...paths(
    'P-02',
    [
      ['both', '/v1/%2e%2e/admin'],
      ['second', '/v1/.%2e/admin'],
      ['first', '/v1/%2E./admin'],
      ['capitals', '/v1/%2E%2E/admin'],
      ['mixed', '/v1/%2e%2E/admin'],
      ['single', '/v1/%2e/x'],
      ['at-the-end', '/v1/x/%2e%2e'],
      ['twice', '/v1/x/%2e%2e/%2e%2e/admin'],
      ['first-of-all', '/%2e%2e/v1/x'],
      ['into-the-rule', '/admin/%2e%2e/v1/x'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-02',
    [
      ['of-a-hidden-file', '/v1/%2egit'],
      ['as-a-third-dot', '/v1/..%2e/x'],
      ['inside-a-name', '/v1/a%2eb'],
    ],
    injected,
  ),
];

const encodedSlashes = [
  ...paths(
    'P-03',
    [
      ['after-dots', '/v1/..%2fadmin'],
      ['after-dots-in-capitals', '/v1/..%2Fadmin'],
      ['around-dots', '/v1%2f..%2fadmin'],
      ['backslash-after-dots', '/v1/..%5cadmin'],
      ['raw-backslash-after-dots', '/v1/..\\admin'],
      ['raw-backslashes-around-dots', '/v1\\..\\admin'],
      ['all-of-it-encoded', '/v1/%2e%2e%2fadmin'],
      ['into-the-rule', '/v1%2fx'],
      ['backslash-into-the-rule', '/v1%5cx'],
      ['raw-backslash-into-the-rule', '/v1\\x'],
      ['first-of-all', '/%2fv1/x'],
      ['backslash-first-of-all', '/%5cv1/x'],
      ['raw-backslash-first-of-all', '/\\v1/x'],
      ['slash-and-backslash', '/v1%2f%5cx'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-03',
    [
      ['in-a-name', '/v1/group%2Fproject'],
      ['backslash-in-a-name', '/v1/a%5Cb'],
      ['raw-backslash-in-a-name', '/v1/a\\b'],
    ],
    injected,
  ),
  ...paths(
    'P-03',
    [
      ['outside-in-either-reading', '/x%2fv1/y'],
      ['backslash-outside-in-either-reading', '/x%5cv1%5cy'],
    ],
    bare,
  ),
];

const doubleEncoding = [
  ...paths(
    'P-04',
    [
      ['dots', '/v1/%252e%252e/admin'],
      ['dots-three-times', '/v1/%25252e%25252e/admin'],
      ['dots-by-digits', '/v1/%25%32%65%25%32%65/admin'],
      ['slash', '/v1/..%252fadmin'],
      ['backslash', '/v1/..%255cadmin'],
      ['slash-into-the-rule', '/v1%252fx'],
      ['letters-into-the-rule', '/%2576%2531/x'],
      ['nul', '/v1/%2500'],
      ['nul-by-digits', '/v1/%25%30%30'],
      ['line-break', '/v1/%250d%250aX:%201'],
      ['overlong', '/v1/%25c0%25ae'],
      ['four-times', '/v1/%2525252e%2525252e/admin'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-04',
    [
      ['of-a-percent-sign', '/v1/100%25'],
      ['of-a-letter-inside', '/v1/%2541'],
      ['of-a-slash-inside', '/v1/a%252Fb'],
    ],
    injected,
  ),
];

/** Read by an upstream that merges slashes or decodes once, and then takes what is left for a name. */
const partlyRead = [
  ...paths(
    'P-03',
    [
      ['of-a-name-after-a-repeated-slash', '/repos//a%2fb/contents'],
      ['of-a-name-after-a-backslash', '/repos//a%5cb/contents'],
      ['encoded-twice-in-a-name', '/repos/a%252fb%2fcontents'],
      ['raw-backslash-in-a-name-encoded-slash', '/repos/a\\b%2fcontents'],
    ],
    ambiguous,
    'inner_star',
  ),
  ...paths(
    'P-03',
    [
      ['repeated-outside', '/files//a%2fb'],
      ['encoded-twice-outside', '/files/a%252fb%2fc'],
    ],
    injected,
    'inner_star',
  ),
];

const slashes = [
  ...paths(
    'P-05',
    [
      ['before-the-rule', '//v1/x'],
      ['three-before-the-rule', '///v1/x'],
      ['encoded-between', '/%2f/v1/x'],
      ['with-a-backslash', '/\\/v1/x'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-05',
    [
      ['inside-the-rule', '/v1//x'],
      ['many-inside-the-rule', '/v1////x'],
      ['at-the-end', '/v1//'],
      ['another-path-inside', '/v1//admin//'],
    ],
    injected,
  ),
  ...paths(
    'P-05',
    [
      ['alone', '//'],
      ['before-another-path', '//admin'],
      ['before-the-rule-elsewhere', '/admin//v1/x'],
      ['a-host-after-them', '//evil.test/v1/x'],
    ],
    bare,
  ),
];

const parameters = [
  ...paths(
    'P-06',
    [
      ['on-the-segment-of-the-rule', '/v1;x=/admin'],
      ['on-that-segment-with-more', '/v1;x/y'],
      ['encoded-on-that-segment', '/v1%3bx/y'],
      ['encoded-twice-on-that-segment', '/v1%253bx/y'],
      ['on-dots', '/v1/..;/admin'],
      ['with-a-value-on-dots', '/v1/..;x=1/admin'],
      ['encoded-on-dots', '/v1/..%3b/admin'],
      ['on-a-dot', '/v1/.;/x'],
      ['on-nothing', '/;/v1/x'],
      ['with-dots-inside', '/v1/x;/../../admin'],
      ['with-encoded-dots-inside', '/v1/x;%2f..%2f..%2fadmin'],
      // Servlet containers remove a parameter before they decode, other servers afterwards.
      ['that-holds-an-encoded-slash', '/v1/x;u=%2fadmin'],
      ['that-holds-a-slash-encoded-twice', '/v1/x;u=%252fadmin'],
      ['that-holds-a-backslash', '/v1/x;u=\\admin'],
      ['that-ends-in-an-encoded-question-mark', '/v1;%3f/x'],
      ['that-ends-in-an-encoded-fragment', '/v1;%23/x'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-06',
    [
      ['below-the-rule', '/v1/x;y=1'],
      ['session-below-the-rule', '/v1/x;jsessionid=1/y'],
      ['several-below-the-rule', '/v1/x;a=1;b=2/y;c'],
      ['alone-below-the-rule', '/v1/;'],
    ],
    injected,
  ),
  ...paths(
    'P-06',
    [
      ['that-names-the-rule', '/admin;/v1x'],
      ['on-another-segment', '/admin;v=1/x'],
    ],
    bare,
  ),
];

const letters = [
  ...paths(
    'P-07',
    [
      ['capital', '/V1/x'],
      ['encoded-capital', '/%561/x'],
      ['longer-segment', '/v10/x'],
      ['the-segment-alone', '/v1'],
      ['shorter-segment', '/v/x'],
    ],
    bare,
  ),
  ...paths(
    'P-07',
    [
      ['of-what-the-star-takes', '/v1/ADMIN'],
      ['mixed-after-the-rule', '/v1/xY%5A'],
    ],
    injected,
  ),
  ...paths(
    'P-07',
    [
      ['encoded-letter', '/%76%31/x'],
      ['encoded-digit', '/v%31/x'],
      ['sign-for-the-digit', '/v%EF%BC%91/x'],
      ['capital-then-into-the-rule', '/V1/../v1/x'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-07',
    [
      ['of-an-exact-path', '/Exact'],
      ['of-a-path-around-a-star', '/Repos/x/contents'],
      ['of-an-encoded-letter', '/caf%C3%89/x'],
    ],
    bare,
    'stars',
  ),
];

/** Characters that some servers turn into dots, slashes and percent signs: NFKC, and code pages of Windows. */
const lookalikes = [
  ...paths(
    'P-02',
    [
      ['space-after', '/v1/..%20/admin'],
      ['space-before', '/v1/%20../admin'],
      ['space-between', '/v1/.%20./admin'],
      ['ideographic-space-after', '/v1/..%e3%80%80/admin'],
      ['no-break-space-after', '/v1/..%c2%a0/admin'],
      ['one-dot-leaders', '/v1/%e2%80%a4%e2%80%a4/admin'],
      ['one-dot-leader-and-dot', '/v1/.%E2%80%A4/admin'],
      ['two-dot-leader', '/v1/%e2%80%a5/admin'],
      ['small-full-stops', '/v1/%ef%b9%92%ef%b9%92/admin'],
      ['full-width-full-stops', '/v1/%ef%bc%8e%ef%bc%8e/admin'],
      ['full-width-percent', '/v1/%ef%bc%852e%ef%bc%852e/admin'],
      ['full-width-percent-encoded-twice', '/v1/%25ef%25bc%25852e./admin'],
      ['arabic-percent', '/v1/%d9%aa2e%d9%aa2e/admin'],
      ['into-the-rule-by-leaders', '/admin/%e2%80%a5/v1/x'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-03',
    [
      ['fraction-slash-after-dots', '/v1/..%e2%81%84admin'],
      ['full-width-solidus-after-dots', '/v1/..%ef%bc%8fadmin'],
      ['full-width-backslash-after-dots', '/v1/..%ef%bc%bcadmin'],
      ['small-backslash-after-dots', '/v1/..%ef%b9%a8admin'],
      ['yen-sign-after-dots', '/v1/..%c2%a5admin'],
      ['acute-accent-after-dots', '/v1/..%c2%b4admin'],
      ['full-width-solidus-into-the-rule', '/v1%ef%bc%8fx'],
      ['fraction-slash-into-the-rule', '/v1%e2%81%84x'],
      ['full-width-percent-into-the-rule', '/v1%ef%bc%852fx'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-02',
    [
      ['three-dot-leader', '/v1/%e2%80%a6/x'],
      ['two-dot-leader-in-a-name', encodeURI('/v1/東京\u2025大阪')],
      ['space-in-a-name-with-dots', '/v1/..%20x'],
    ],
    injected,
  ),
  ...paths(
    'P-07',
    [
      ['japanese-name', encodeURI('/v1/見積書.pdf')],
      ['full-width-letters-below-the-rule', encodeURI('/v1/ＡＢＣ１２３.txt')],
      ['full-width-percent-before-digits', encodeURI('/v1/消費税８％10月.pdf')],
      ['full-width-percent-before-a-byte', encodeURI('/v1/８％90年.pdf')],
      ['full-width-solidus-in-a-name', encodeURI('/v1/（株）／見積？.pdf')],
      ['question-in-spanish', encodeURI('/v1/¿Qué es?.pdf').replace('?', '%3F')],
      ['acute-accent-for-an-apostrophe', encodeURI('/v1/l´eau')],
      ['arabic-percent-in-a-name', encodeURI('/v1/خصم ٪50.pdf')],
      ['hangul-jamo', encodeURI('/v1/\u1112\u1161\u11ab글.hwp')],
      ['arabic-presentation-forms', encodeURI('/v1/\ufefb\ufdfa.txt')],
      ['ligature-and-sign', encodeURI('/v1/\ufb01le 20℃ Ⅳ ½ №5 ™.txt')],
      ['decomposed-kana', encodeURI('/v1/か\u3099く')],
      ['half-width-kana', encodeURI('/v1/\uff76\uff9e')],
    ],
    injected,
  ),
  ...paths(
    'P-07',
    [
      ['name-in-the-pattern', encodeURI('/資料/１月；２月.pdf')],
      ['half-width-kana-in-the-pattern', encodeURI('/\uff83\uff9e/x')],
    ],
    injected,
    'japanese',
  ),
  ...paths(
    'P-07',
    [
      ['decomposed-kana-of-nothing', encodeURI('/か\u3099/x')],
      ['full-width-kana-for-those-of-the-pattern', encodeURI('/\u30c7/x')],
    ],
    bare,
    'japanese',
  ),
  ...paths(
    'P-07',
    [
      ['compatibility-ideograph-for-one-of-the-pattern', encodeURI('/資\uf9be/x')],
      ['full-width-solidus-for-that-of-the-pattern', encodeURI('/資料／x')],
    ],
    ambiguous,
    'japanese',
  ),
];

const brokenEscapes = [
  ...paths(
    'P-10',
    [
      ['overlong-dots', '/v1/%c0%ae%c0%ae/admin'],
      ['overlong-dot-of-three', '/v1/%e0%80%ae%e0%80%ae/admin'],
      ['overlong-dot-of-four', '/v1/%f0%80%80%ae/x'],
      ['overlong-slash', '/v1/..%c0%afadmin'],
      ['overlong-backslash', '/v1/..%c1%9cadmin'],
      ['overlong-nul', '/v1/x%c0%80.json'],
      ['escape-of-microsoft', '/v1/%u002e%u002e/admin'],
      ['letter-in-that-escape', '/v1/%u0041'],
      ['not-hexadecimal', '/v1/%zz'],
      ['half-an-escape', '/v1/%4'],
      ['percent-sign-alone', '/v1/%'],
      ['second-digit-wrong', '/v1/%2G'],
      ['escape-in-an-escape', '/v1/%%32%65'],
      ['nul', '/v1/x%00.json'],
      ['line-break', '/v1/%0d%0aX-Scope:%20all'],
      ['line-feed', '/v1/%0aGET'],
      ['tab', '/v1/%09'],
      ['escape-character', '/v1/%1b%5B2J'],
      ['delete', '/v1/%7f'],
      ['latin1', '/v1/caf%e9'],
      ['cut', '/v1/%c3'],
      ['continuation-alone', '/v1/%80'],
      ['surrogate', '/v1/%ed%a0%80'],
      ['beyond-unicode', '/v1/%f5%80%80%80'],
      ['byte-ff', '/v1/%ff%fe'],
    ],
    ambiguous,
  ),
  ...paths(
    'P-10',
    [
      ['whole', '/v1/caf%C3%A9'],
      ['of-four-bytes', '/v1/%F0%9F%98%80'],
      ['lower-case-digits', '/v1/%c3%a9'],
    ],
    injected,
  ),
  ...paths(
    'P-10',
    [
      ['in-the-pattern', '/caf%C3%A9/x'],
      ['in-the-pattern-in-small-digits', '/caf%c3%a9/x'],
    ].map(([name = '', path = '']) => [name, path] as const),
    (path) => (path.includes('%C3') ? injected(path) : ambiguous),
    'stars',
  ),
];

export const pathRows: readonly MessageRow[] = [
  ...dotSegments,
  ...encodedDots,
  ...encodedSlashes,
  ...doubleEncoding,
  ...partlyRead,
  ...slashes,
  ...parameters,
  ...letters,
  ...lookalikes,
  ...brokenEscapes,
  ...rowsOf('P-10', [['raw-overlong', request('GET /v1/\xc0\xae\xc0\xae/admin'), malformed]], {
    policy: 'paths',
  }),
];
