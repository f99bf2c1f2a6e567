import { describe, expect, it } from 'vitest';
import { parseRefusal } from '../../../src/workload/network/refusals.ts';

const record = {
  ...{
    time: 'now',
    sandbox: 'one',
    revision: 1,
    method: 'GET',
    authority: 'example.com:443',
    path: '/secret',
  },
  ...{
    outcome: 'refused',
    reason: 'address_denied',
    cause: 'metadata',
    status: 403,
    bytes_up: 0,
    bytes_down: 10,
  },
};

describe('a record', () => {
  it('of a refusal says what was refused, without the path', () =>
    expect(parseRefusal(JSON.stringify(record))).toEqual({
      ...{
        reason: 'address_denied',
        cause: 'metadata',
        authority: 'example.com:443',
        method: 'GET',
        status: 403,
      },
    }));
  it('of a failure counts', () =>
    expect(parseRefusal(JSON.stringify({ ...record, outcome: 'failed' }))).toMatchObject({
      reason: 'address_denied',
    }));
  it.each(['forwarded', 'injected', 'tunnelled', 'served', undefined])(
    'of the outcome %s is none',
    (outcome) => expect(parseRefusal(JSON.stringify({ ...record, outcome }))).toBeUndefined(),
  );
  it.each(['', 'no JSON', '[]', 'null', '{"outcome":"refused"}'])('%j is none', (text) =>
    expect(parseRefusal(text)).toBeUndefined(),
  );
});
