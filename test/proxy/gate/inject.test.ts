// The gate by itself, with a scripted callback and no socket.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { nextTurn } from '../../../src/base/steps.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { CallbackOutcome, CallbackResolver } from '../../../src/callback/resolver.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { EgressRules } from '../../../src/proxy/upstream/address-guard.ts';
import {
  type GateRequest,
  type Injection,
  decideRequest,
  markReplaced,
} from '../../../src/proxy/gate/inject.ts';
import { authorityOf, requestHead } from '../request-head.ts';
import { closedEgress } from '../../support/closed-egress.ts';

const TOKEN = 'Bearer canary-of-the-gate';
const EGRESS: EgressRules = { ...closedEgress, allowLoopback: true };
const rule = {
  name: 'ours',
  match_hosts: ['api.test', 'localhost'],
  match_paths: ['/v1/*'],
  headers: [
    { name: 'X_Api-Key', type: 'opaque', value: TOKEN },
    { name: 'X-Plain', type: 'plaintext', value: 'plain' },
  ],
};
const callback = { name: 'asked', match_hosts: ['cb.test'], url: 'https://cb.test/', ttl_seconds: 60 };

type Asked = GateRequest & { readonly asked: readonly string[] };

function requestFor(
  text: string,
  path: string,
  more: Partial<GateRequest> & {
    readonly outcome?: CallbackOutcome | Promise<CallbackOutcome>;
    /** Is set in the rule and in the callback. */
    readonly entry?: object;
    readonly rules?: readonly object[];
  } = {},
): Asked {
  const parsed = parseProxyConfig({
    rules: more.rules ?? [{ ...rule, ...more.entry }],
    callbacks: [{ ...callback, ...(more.entry && 'scrub' in more.entry ? more.entry : {}) }],
    no_proxy: ['free.test'],
  });
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, 1) : parsed;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  const asked: string[] = [];
  const callbacks: CallbackResolver = {
    resolve(entry, authority) {
      asked.push(`${entry.name} ${authority.text}`);
      return more.outcome ?? { ok: false, reason: 'not scripted' };
    },
    forget: () => undefined,
    close: async () => undefined,
    cached: 0,
  };
  const base = { policy: compiled.value, authority: authorityOf(text), path, scheme: 'https' as const };
  return { ...base, egress: EGRESS, callbacks, ...more, asked };
}

async function injectionOf(request: GateRequest): Promise<Injection> {
  const decision = await decideRequest(request);
  if (!('injection' in decision) || decision.injection === undefined) throw new Error('nothing is injected');
  return decision.injection;
}

const responded = (headers: Readonly<Record<string, string>>, cached: boolean): CallbackOutcome => ({
  ok: true,
  cached,
  headers: Object.entries(headers).map(([name, value]) => {
    const secret = new Secret(value);
    return { name, value: secret, masks: [secret] };
  }),
});

describe('the gate', () => {
  it('makes lines of the headers of a rule, and a list of them for HTTP/2', async () => {
    const injection = await injectionOf(requestFor('api.test:443', '/v1/x'));
    const { isReplaced, lines, ...others } = injection;
    const sent = ['x-api-key', 'X_API_KEY', 'x_plain', 'x-api-key2', 'x-plainly', 'authorization'];
    const takes = (name: string): boolean => isReplaced(Buffer.from(name), 0, name.length);
    expect(sent.filter(takes)).toEqual(['x-api-key', 'X_API_KEY', 'x_plain']);
    expect({ ...others, lines: lines.toString() }).toEqual({
      names: ['X_Api-Key', 'X-Plain'],
      lines: `X_Api-Key: ${TOKEN}\r\nX-Plain: plain\r\n`,
      list: ['x_api-key', TOKEN, 'x-plain', 'plain'],
      listed: ['x_api-key', 'x-plain'],
      isBinding: false,
    });
  });

  it('names the rule, and masks its secrets', () => {
    const decision = decideRequest(requestFor('api.test:443', '/v1/x'));
    expect(decision).toMatchObject({ rule: 'ours' });
    expect(decision).not.toHaveProperty('reason');
    expect(decision).toHaveProperty('mask', expect.anything());
  });

  it('refuses what a rule decides that refuses its requests, and says why in the record alone', () => {
    const refused = { ...rule, refuse: 'the workspace secret KEY does not exist' };
    const rules = [refused, { ...rule, name: 'rest', match_paths: ['/v2/*'] }];
    expect(decideRequest(requestFor('api.test:443', '/v1/x', { rules }))).toMatchObject({
      refused: 'rule_unusable',
      status: 502,
      cause: 'the workspace secret KEY does not exist',
    });
    expect(decideRequest(requestFor('api.test:443', '/v2/x', { rules }))).toMatchObject({ rule: 'rest' });
  });

  it('renders the lines of a rule once', async () => {
    const request = requestFor('api.test:443', '/v1/x');
    expect(await injectionOf(request)).toBe(await injectionOf(request));
    const [first, second] = [decideRequest(request), decideRequest(request)];
    expect(Object.entries(first).find(([key]) => key === 'mask')?.[1]).toBe(
      Object.entries(second).find(([key]) => key === 'mask')?.[1],
    );
  });

  it.each([
    ['other.test:443', '/', { injection: undefined, mask: undefined, reason: 'no_match' }],
    ['free.test:443', '/', { injection: undefined, mask: undefined, reason: 'no_proxy' }],
  ])('lets %s pass as it is', (text, path, expected) => {
    expect(decideRequest(requestFor(text, path))).toEqual(expected);
  });

  it('injects nothing if no path of the host matches, and masks its secrets nevertheless', () => {
    const decision = decideRequest(requestFor('api.test:443', '/v2/x'));
    expect(decision).toMatchObject({ injection: undefined, reason: 'no_path_match' });
    expect(decision).toHaveProperty('mask', expect.anything());
  });

  it('has nothing to mask for `*` on a host of callbacks', () => {
    expect(decideRequest(requestFor('cb.test:443', '*'))).toEqual({
      injection: undefined,
      mask: undefined,
      reason: 'no_path_match',
    });
  });

  it('refuses a path that can be read in two ways', () => {
    expect(decideRequest(requestFor('api.test:443', '/v1/..%2fx'))).toMatchObject({
      refused: 'ambiguous_path',
      cause: expect.stringContaining('dot segment'),
    });
  });

  it.each([
    ['rule', 'api.test:80', '/v1/x'],
    ['callback', 'cb.test:80', '/'],
  ])('sends no header of a %s in plaintext', (_, text, path) => {
    const request = requestFor(text, path, { scheme: 'http' });
    expect(decideRequest(request)).toMatchObject({ refused: 'cleartext_refused' });
    expect(request.asked).toEqual([]);
  });

  it('sends one in plaintext if that is listed, and refuses no plaintext request that gets none', () => {
    const decision = decideRequest(requestFor('localhost:80', '/v1/x', { scheme: 'http' }));
    expect(decision).toMatchObject({ rule: 'ours' });
    const none = decideRequest(requestFor('api.test:80', '/v2/x', { scheme: 'http' }));
    expect(none).toMatchObject({ reason: 'no_path_match' });
  });
});

describe('a callback', () => {
  it('is called with its entry and the authority, and returns the headers', async () => {
    const outcome = Promise.resolve(responded({ Authorization: TOKEN }, false));
    const request = requestFor('cb.test:443', '/', { outcome });
    const decision = await decideRequest(request);
    expect(request.asked).toEqual(['asked cb.test:443']);
    expect(decision).toMatchObject({
      callback: 'asked',
      isCached: false,
      injection: { names: ['Authorization'] },
    });
    expect(decision).toHaveProperty('mask', expect.anything());
  });

  it('whose result is cached decides at once, and with the same lines and mask', () => {
    const outcome = responded({ Authorization: TOKEN }, true);
    const request = requestFor('cb.test:443', '/', { outcome });
    const [first, second] = [decideRequest(request), decideRequest(request)];
    expect(first).toMatchObject({ callback: 'asked', isCached: true });
    for (const key of ['injection', 'mask'])
      expect(Object.getOwnPropertyDescriptor(first, key)?.value).toBe(
        Object.getOwnPropertyDescriptor(second, key)?.value,
      );
  });

  it('that returns no header lets the request pass unchanged', () => {
    const decision = decideRequest(requestFor('cb.test:443', '/', { outcome: responded({}, false) }));
    expect(decision).toMatchObject({ injection: undefined, mask: undefined, callback: 'asked' });
  });

  it.each([false, true])('that fails refuses the request (later: %s)', async (isLater) => {
    const failed: CallbackOutcome = { ok: false, reason: 'status 500' };
    const request = requestFor('cb.test:443', '/', { outcome: isLater ? Promise.resolve(failed) : failed });
    expect(await decideRequest(request)).toMatchObject({ refused: 'callback_failed', cause: 'status 500' });
  });
});

describe('of the fields of the client', () => {
  it('those under an injected name and those of gateways are marked, and no other', async () => {
    const injection = await injectionOf(requestFor('api.test:443', '/v1/x'));
    const rows: readonly (readonly [string, 0 | 1])[] = [
      ['Host: api.test', 0],
      ['x-api-key: a', 1],
      ['X_API_KEY: a', 1],
      ['X-Api-Keys: a', 0],
      ['XApi-Key: a', 0],
      ['x_plain: a', 1],
      ['X-Original-URL: /a', 1],
      ['X_Rewrite_Url: /a', 1],
      ['x-forwarded-uri: /a', 1],
      ['X-Forwarded-For: a', 1],
      ['X_Forwarded_Host: a', 1],
      ['X-Forwarded-Port: 1', 1],
      ['X-Forwarded-Proto: http', 1],
      ['X-Real-IP: a', 1],
      ['Forwarded: a', 1],
      ['Via: 1.1 a', 1],
      ['Proxy: a', 1],
      ['X-Request-Id: a', 0],
      ['Accept: */*', 0],
    ];
    const head = requestHead('GET /v1/x HTTP/1.1', ...rows.map(([line]) => line));
    const drop = new Uint8Array(rows.length);
    markReplaced(head, injection, drop);
    expect([...drop]).toEqual(rows.map(([, mark]) => mark));
  });

  it('fields that were marked before stay marked', async () => {
    const injection = await injectionOf(requestFor('api.test:443', '/v1/x'));
    const head = requestHead('GET /v1/x HTTP/1.1', 'Host: api.test', 'Accept: a', 'X-Plain: b');
    const drop = Uint8Array.of(0, 1, 0);
    markReplaced(head, injection, drop);
    expect([...drop]).toEqual([0, 1, 1]);
  });
});

describe('a body is searched for what is masked in the head', () => {
  const outcome = responded({ Authorization: TOKEN }, true);
  const rows: readonly (readonly [string, string])[] = [
    ['api.test:443', '/v1/x'],
    ['api.test:443', '/v2/x'],
    ['cb.test:443', '/'],
  ];
  const masksOf = (request: GateRequest): readonly unknown[] => {
    const decision = decideRequest(request);
    return ['mask', 'bodyMask'].map((key) => Object.getOwnPropertyDescriptor(decision, key)?.value);
  };

  it.each(rows)('if its entry says so: %s %s', (text, path) => {
    const [mask, bodyMask] = masksOf(requestFor(text, path, { outcome, entry: { scrub: 'body' } }));
    expect(bodyMask).toBe(mask);
    expect(mask).toBeDefined();
  });

  it.each(rows)('if the operator says so: %s %s', (text, path) => {
    const [mask, bodyMask] = masksOf(requestFor(text, path, { outcome, scrubsBodies: true }));
    expect(bodyMask).toBe(mask);
    expect(mask).toBeDefined();
  });

  it.each(rows)('and nowhere else: %s %s', (text, path) => {
    const [mask, bodyMask] = masksOf(requestFor(text, path, { outcome }));
    expect([mask === undefined, bodyMask]).toEqual([false, undefined]);
  });

  it('unless there is too much to search for: then nothing is sent', async () => {
    const opaque = (i: number): object => ({
      name: `X-${i}`,
      type: 'opaque',
      value: `key-${i}-`.repeat(1_300),
    });
    const entry = { headers: Array.from({ length: 10 }, (_, i) => opaque(i)) };
    for (const path of ['/v1/x', '/v2/x']) {
      const verdict = await decideRequest(requestFor('api.test:443', path, { scrubsBodies: true, entry }));
      expect(verdict).toMatchObject({ refused: 'scrub_impossible', cause: 'too_many_values' });
      expect(await decideRequest(requestFor('api.test:443', path, { entry }))).not.toHaveProperty('refused');
    }
  });

  it('nor for values that are so short that they occur by chance', () => {
    const headers = [{ name: 'X-Pin', type: 'opaque', value: 'short' }];
    const request = requestFor('api.test:443', '/v1/x', { scrubsBodies: true, entry: { headers } });
    expect(masksOf(request)[1]).toBeUndefined();
  });
});

// Each host has a set of rules of its own, with nearly all values of the document.
describe('the masks of many hosts', () => {
  const HOSTS = 90;
  const opaque = (name: string, bytes: number): object => ({
    name,
    type: 'opaque',
    value: name.padEnd(bytes, name),
  });
  const wide = {
    match_hosts: ['*.good.test'],
    headers: Array.from({ length: 60 }, (_, i) => opaque(`X-Wide-${i}`, 4_000)),
  };
  const own = Array.from({ length: HOSTS }, (_, i) => ({
    match_hosts: [`h${i}.good.test`],
    headers: [opaque(`X-Own-${i}`, 50)],
  }));

  it('take no more than the budget of a sandbox', async () => {
    setFlagsFromString('--expose-gc');
    const used = async (): Promise<number> => {
      await nextTurn();
      runInNewContext('gc')();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const { policy } = requestFor('api.test:443', '/', { rules: [...own, wide] });
    const before = await used();
    for (let i = 0; i < HOSTS; i += 1) {
      const request = { ...requestFor(`h${i}.good.test:443`, '/'), policy };
      expect(await decideRequest(request)).toMatchObject({ rule: `rules[${i}]` });
    }
    // Without a limit these were 2 GiB.
    expect((await used()) - before).toBeLessThan(16 * 2 ** 20);
  });
});
