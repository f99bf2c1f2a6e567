// C-10 and C-11: what the endpoint receives, whatever the client sends, and rules that change during a call.
import { GOOD, reply } from './row-shapes.ts';
import type { CallbackPlay, CallbackRow } from './callback-script.ts';

const ask = (to?: string, fields?: readonly string[], target?: string): CallbackPlay => ({
  ask: 1,
  ...(to === undefined ? {} : { to }),
  ...(fields ? { fields } : {}),
  ...(target === undefined ? {} : { target }),
});
const CALL_BODY = '{"host":"api.test","port":{ORIGIN}}';

const callWithBody = (name: string, play: CallbackPlay): CallbackRow => ({
  id: `C-10 ${name}`,
  script: { play: [play] },
  expect: { outcomes: ['call-1'], calls: 1, callBodies: [CALL_BODY] },
});

/** The endpoint receives the authority that was connected to and verified, and nothing of the request. */
const lies: readonly CallbackRow[] = [
  callWithBody('capitals', ask('API.TEST')),
  callWithBody('trailing-dot', ask('api.test.')),
  callWithBody(
    'forwarded-host',
    ask(undefined, ['X-Forwarded-Host: evil.test', 'Forwarded: host=evil.test', 'X-Host: evil.test']),
  ),
  callWithBody('forwarded-port', ask(undefined, ['X-Forwarded-Port: 1', 'X-Forwarded-Proto: http'])),
  callWithBody('absolute-target', ask(undefined, [], 'https://{AUTHORITY}{PATH}')),
  callWithBody('absolute-target-in-capitals', ask('API.test', [], 'HTTPS://{AUTHORITY}{PATH}')),
  callWithBody('shared-secret-of-its-own', ask(undefined, ['X-Shared: guessed', 'X_Shared: guessed'])),
  callWithBody(
    'credentials-and-cookies',
    ask(undefined, ['Authorization: mine', 'Cookie: a=b', 'Connection: X-Shared']),
  ),
  callWithBody('original-url', ask(undefined, ['X-Original-URL: https://evil.test/', 'X-Rewrite-URL: /'])),
  ...([['another-host', 'Host: evil.test', 'host_invalid']] as const).map(
    ([name, field, code]): CallbackRow => ({
      id: `C-10 ${name}-causes-no-call`,
      script: { play: [ask(undefined, [field])] },
      expect: { outcomes: [code], calls: 0 },
    }),
  ),
  {
    id: 'C-10 absolute-target-of-another-host',
    script: { play: [ask(undefined, [], 'https://evil.test{PATH}')] },
    expect: { outcomes: ['authority_mismatch'], calls: 0 },
  },
];

const hold = ['hold', { send: reply('200 OK', [], GOOD) }] as const;
const racing = (
  name: string,
  apply: Extract<CallbackPlay, { apply: unknown }>['apply'],
  outcomes: readonly string[],
  calls: number,
): CallbackRow => ({
  id: `C-11 ${name}`,
  script: {
    responses: [hold],
    // A host without a rule or callback is tunnelled: then there is no second request to read.
    play: [
      { start: 1 },
      { called: 1 },
      { apply },
      'release',
      'settle',
      ...(outcomes.length > 1 ? [ask()] : []),
    ],
  },
  expect: { outcomes, calls },
});

const plainRule = {
  name: 'rule',
  match_hosts: ['api.test'],
  headers: [{ name: 'Authorization', type: 'plaintext', value: 'Basic rule' }],
};

/** A request whose rules change during the call is decided by the new ones; a late result is not cached. */
const races: readonly CallbackRow[] = [
  racing('entry-stays', { callbacks: [{}] }, ['call-2', 'call-2'], 2),
  racing('entry-is-renamed', { callbacks: [{ name: 'renamed' }] }, ['call-2', 'call-2'], 2),
  racing('entry-is-removed', { callbacks: [] }, ['plain'], 1),
  racing('entry-is-disabled', { callbacks: [{ enabled: false }] }, ['plain'], 1),
  racing('entry-is-for-another-host', { callbacks: [{ match_hosts: ['other.test'] }] }, ['plain'], 1),
  racing('endpoint-moves-away', { callbacks: [{ url: 'http://127.0.0.1:1/' }] }, ['failed', 'failed'], 1),
  racing(
    'endpoint-becomes-metadata',
    { callbacks: [{ url: 'http://169.254.169.254/' }] },
    ['failed', 'failed'],
    1,
  ),
  racing(
    'shared-secret-changes',
    {
      callbacks: [
        {
          request_headers: [
            { name: 'X-Shared', type: 'opaque', value: 'shared-secret-5d2e' },
            { name: 'X-New', type: 'plaintext', value: 'v' },
          ],
        },
      ],
    },
    ['call-2', 'call-2'],
    2,
  ),
  racing(
    'host-is-denied',
    { callbacks: [], access_control: { deny_list: ['api.test'] } },
    ['access_denied', 'refused'],
    1,
  ),
  racing('rule-takes-its-place', { callbacks: [], rules: [plainRule] }, ['other', 'other'], 1),
  racing(
    'rule-for-no-path-of-it-takes-its-place',
    { callbacks: [{}], rules: [{ ...plainRule, match_paths: ['/never'] }] },
    ['plain', 'plain'],
    1,
  ),
  {
    id: 'C-11 failure-of-a-removed-entry',
    script: {
      responses: [['hold', 'reset']],
      play: [{ start: 1 }, { called: 1 }, { apply: { callbacks: [] } }, 'release', 'settle'],
    },
    expect: { outcomes: ['plain'], calls: 1 },
  },
  {
    id: 'C-11 failure-before-an-entry-was-renewed',
    script: {
      responses: [['hold', { json: {} }]],
      play: [{ start: 1 }, { called: 1 }, { apply: { callbacks: [{}] } }, 'release', 'settle', ask()],
    },
    expect: { outcomes: ['call-2', 'call-2'], calls: 2 },
  },
  {
    id: 'C-11 three-changes-in-one-wait',
    script: {
      responses: [hold],
      play: [
        { start: 1 },
        { called: 1 },
        { apply: { callbacks: [] } },
        { apply: { callbacks: [{ name: 'b' }] } },
        { apply: { callbacks: [{ name: 'c' }] } },
        'release',
        'settle',
        ask(),
      ],
    },
    expect: { outcomes: ['call-2', 'call-2'], calls: 2 },
  },
  {
    id: 'C-11 late-result-is-not-cached',
    script: {
      responses: [hold],
      play: [{ start: 1 }, { called: 1 }, { apply: { callbacks: [{}] } }, ask(), 'release', 'settle', ask()],
    },
    expect: { outcomes: ['call-2', 'call-2', 'call-2'], calls: 2 },
  },
  {
    id: 'C-11 later-requests-do-not-join-an-old-call',
    script: {
      responses: [hold, hold],
      play: [
        { start: 2 },
        { called: 1 },
        { apply: { callbacks: [{}] } },
        { start: 2 },
        { called: 2 },
        'release',
        'settle',
      ],
    },
    expect: { outcomes: ['call-2', 'call-2', 'call-2', 'call-2'], calls: 2 },
  },
  {
    id: 'C-11 an-open-tunnel-is-decided-for-each-request',
    script: {
      play: [
        'ask_on_the_same_tunnel',
        { apply: { callbacks: [] } },
        'ask_on_the_same_tunnel',
        { apply: { callbacks: [{}] } },
        'ask_on_the_same_tunnel',
      ],
    },
    expect: { outcomes: ['call-1', 'plain', 'call-2'], calls: 2 },
  },
  {
    id: 'C-11 an-open-tunnel-is-denied',
    script: {
      play: [
        'ask_on_the_same_tunnel',
        { apply: { callbacks: [], access_control: { deny_list: ['api.test'] } } },
        'ask_on_the_same_tunnel',
      ],
    },
    expect: { outcomes: ['call-1', 'access_denied'], calls: 1 },
  },
];

export const raceRows: readonly CallbackRow[] = [...lies, ...races];
