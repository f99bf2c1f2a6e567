// When a client of `npm run clients` is green, and when the suite fails.
import { describe, expect, it } from 'vitest';
import {
  findFailures,
  findReason,
  httpVersions,
  isSilentHang,
  type Observation,
  type SeenRequest,
  type Total,
  usesOf,
} from '../../interop/clients/verdict.ts';

const request = (credential: SeenRequest['credential'], httpVersion = '1.1'): SeenRequest => ({
  ...{ host: 'api.test', path: '/echo', httpVersion, credential },
});
const observation = (part: Partial<Observation>): Observation => ({
  ending: { kind: 'exited', code: 0 },
  output: '',
  seen: [request('right'), request('right')],
  ...part,
});
const injected = { injected: ['Authorization'], status: 200 };

describe('a client', () => {
  it('is green when the origin saw the credential as often as it asked', () => {
    const records = [injected, { ...injected, status: 101 }, { status: 200 }];
    expect(findReason({ requests: 2 }, observation({ records }))).toBeUndefined();
  });

  it.each<[string, Parameters<typeof findReason>[0], Partial<Observation>, RegExp]>([
    [
      'a request without the credential',
      {},
      { seen: [request('right'), request('none')] },
      /1 of 2 requests/,
    ],
    ['a request with another value', {}, { seen: [request('wrong')] }, /1 of 1 requests/],
    ['fewer requests than it made', { requests: 3 }, {}, /2 times, the client asked 3 times/],
    ['more requests than it made', { requests: 1 }, {}, /2 times, the client asked 1 times/],
    ['fewer requests than the proxy recorded', {}, { records: [injected, injected, injected] }, /recorded 3/],
    ['no request', {}, { seen: [] }, /no request has reached the origin/],
    [
      'an exit code',
      {},
      { ending: { kind: 'exited', code: 7 }, output: 'no\nroute' },
      /ended with 7: no route/,
    ],
    ['a deadline', {}, { ending: { kind: 'killed', afterSeconds: 30 } }, /killed after 30 s/],
    ['a stream whose times it does not report', { streams: true }, {}, /not reported the times/],
    ['a stream that was buffered', { streams: true }, { output: 'spread 3\n' }, /within 3 ms/],
  ])('is not green with %s', (_, expected, part, reason) =>
    expect(findReason(expected, observation(part))).toMatch(reason),
  );

  it('is green with a stream whose events arrive one by one', () =>
    expect(findReason({ streams: true }, observation({ output: 'a\nspread 402\n' }))).toBeUndefined());

  it('hangs silently when it was killed and has said nothing', () => {
    const ending = { kind: 'killed', afterSeconds: 30 } as const;
    expect(isSilentHang(observation({ ending }))).toBe(true);
    expect(isSilentHang(observation({ ending, output: 'waiting' }))).toBe(false);
  });

  it.each([
    ['with the credential at the origin', {}, { proxy: 'yes', ca: 'yes' }],
    ['without a record of the proxy', { seen: [], records: [] }, { proxy: 'no', ca: 'unknown' }],
    ['with a failed handshake', { seen: [], records: [{}] }, { proxy: 'yes', ca: 'no' }],
  ] as const)('uses the proxy and trusts the CA %s', (_, part, uses) =>
    expect(usesOf(observation(part))).toEqual(uses),
  );

  it('shows each version of HTTP once', () =>
    expect(httpVersions([request('right'), request('right', '2.0'), request('right')])).toBe('2, 1.1'));
});

describe('the suite', () => {
  const total: Total = {
    ...{ ran: 100, green: 85, cured: 10, skipped: 5 },
    ...{ greenWithoutRun: [], silent: [], withoutToken: [] },
  };

  it('holds with 85 of 100', () => expect(findFailures(total)).toEqual([]));

  it.each<[Partial<Total>, RegExp]>([
    [{ ran: 89, green: 89 }, /only 89 clients ran/],
    [{ green: 84 }, /only 84 of 100/],
    [{ greenWithoutRun: ['curl'] }, /without run.*: curl/],
    [{ silent: ['npm'] }, /without a message: npm/],
    [{ withoutToken: ['git'] }, /token: git/],
  ])('fails with %o', (part, failure) => expect(findFailures({ ...total, ...part }).join()).toMatch(failure));
});
