// templates that name workspace secrets. GOOD, good, BRACES ("{GOOD}") and constructor exist.
import { type DocumentRow, refusedRow, takenRow } from './document-script.ts';

const template = (value: string, more: object = {}): unknown => ({
  rules: [
    { match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'workspace_secret', value }], ...more },
  ],
});
const VALUE = 'rules.0.headers.0.value value_error';

const MALFORMED: readonly (readonly [name: string, value: string])[] = [
  ['no-placeholder', 'Bearer GOOD'],
  ['empty', ''],
  ['empty-braces', 'Bearer {}'],
  ['blank-in-braces', '{ GOOD }'],
  ['shell-style', '$GOOD'],
  ['double-braces', '{{GOOD}}'],
  ['nested-braces', '{GO{OD}}'],
  ['unclosed', 'Bearer {GOOD'],
  ['unopened', 'Bearer GOOD}'],
  ['stray-beside-a-good-one', '{GOOD}{'],
  ['escaped-braces', '\\{GOOD\\}'],
  ['hyphen', '{GO-OD}'],
  ['dot', '{process.env}'],
  ['digit-first', '{1GOOD}'],
  ['path', '{../../etc/passwd}'],
  ['default-value', '{GOOD:-canary}'],
  ['call', '{GOOD()}'],
  ['index', '{GOOD[0]}'],
  ['unicode-name', '{GO\u00d6D}'],
  ['zero-width-name', '{GO\u200bOD}'],
  ['fullwidth-braces', '\uff5bGOOD\uff5d'],
  ['line-end-inside', '{GOOD\n}'],
];

/** Well-formed names of secrets that do not exist. */
const MISSING: readonly (readonly [name: string, value: string])[] = [
  ['missing', '{MISSING}'],
  ['missing-beside-a-good-one', '{GOOD}{MISSING}'],
  ['another-case', '{Good}'],
  ['proto', '{__proto__}'],
  ['tostring', '{toString}'],
  ['has-own-property', '{hasOwnProperty}'],
  ['underscore', '{_}'],
  ['long-name', `{${'A'.repeat(4_000)}}`],
];

export const secretRows: readonly DocumentRow[] = [
  ...MALFORMED.map(([name, value]) => refusedRow(`A-06 ${name}`, template(value), [VALUE])),
  ...MISSING.map(([name, value]) => refusedRow(`A-06 ${name}`, template(value), [], [VALUE])),
  refusedRow(
    'A-06 to-a-callback',
    {
      callbacks: [
        {
          match_hosts: ['c.test'],
          url: 'https://cb.test/',
          ttl_seconds: 60,
          request_headers: [{ name: 'X-Key', type: 'workspace_secret', value: '{GOOD}' }],
        },
      ],
    },
    ['callbacks.0.request_headers.0.type union_tag_invalid'],
  ),
  refusedRow(
    'A-06 as-a-name',
    { rules: [{ match_hosts: ['api.test'], headers: [{ name: '{GOOD}', type: 'plaintext', value: 'v' }] }] },
    ['rules.0.headers.0.name value_error'],
  ),
  refusedRow('A-06 too-long-once-filled-in', template('{GOOD}'.repeat(1_000)), [], [VALUE]),
  takenRow('A-06 expanded-once-and-no-further', template('{BRACES}'), {
    ask: [['api.test', '/']],
    arrived: [['X-Key: {GOOD}']],
  }),
  takenRow('A-06 case-is-part-of-a-name', template('{good}:{GOOD}'), {
    ask: [['api.test', '/']],
    arrived: [['X-Key: canary-in-small-letters:canary-good-value']],
  }),
  takenRow('A-06 a-secret-of-the-name-constructor', template('{constructor}'), {
    ask: [['api.test', '/']],
    arrived: [['X-Key: canary-constructor']],
  }),
  takenRow(
    'A-06 plaintext-expands-nothing',
    {
      rules: [
        { match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: '{GOOD}' }] },
      ],
    },
    { ask: [['api.test', '/']], arrived: [['X-Key: {GOOD}']] },
  ),
  takenRow(
    'A-06 opaque-expands-nothing',
    {
      rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'opaque', value: 'a{GOOD}b' }] }],
    },
    { ask: [['api.test', '/']], arrived: [['X-Key: a{GOOD}b']] },
  ),
  takenRow('A-06 replacement-patterns-are-text', template("$&$1$'{GOOD}$$"), {
    ask: [['api.test', '/']],
    arrived: [["X-Key: $&$1$'canary-good-value$$"]],
  }),
  takenRow('A-06 a-disabled-rule-needs-none', template('{MISSING}', { enabled: false })),
];
