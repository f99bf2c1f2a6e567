// A client is admitted to the sandbox of its token or of the listener. A connection never belongs to two sandboxes.
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { type Admission, createAdmission } from '../../../src/proxy/accept/admission.ts';
import type { ProxyContext } from '../../../src/proxy/context.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { createOrigin } from '../../support/recording-origin.ts';
import { WireClient } from '../../support/wire-client.ts';
import { errorOf, head } from '../data-path.ts';

const own = { sandbox: 'own' } as ProxyContext;
const a = { sandbox: 'a' } as ProxyContext;
const b = { sandbox: 'b' } as ProxyContext;

function admissionOf(isOpen: boolean): Admission {
  return createAdmission({ own, isOpen: () => isOpen, allowClients: undefined });
}

describe('a client', () => {
  it.each([
    ['without a token is admitted to the listener’s own sandbox if no token is required', true, 'none', own],
    ['without a token is rejected if a token is required', false, 'none', undefined],
    ['with malformed credentials is rejected even if no token is required', true, 'malformed', undefined],
    [
      'with an unknown token is rejected even if no token is required',
      true,
      new Secret('unknown'),
      undefined,
    ],
    [
      'with the token of a sandbox is admitted to that sandbox if no token is required',
      true,
      new Secret('a'),
      a,
    ],
    [
      'with the token of a sandbox is admitted to that sandbox if a token is required',
      false,
      new Secret('b'),
      b,
    ],
  ] as const)('%s', (_, isOpen, presented, expected) => {
    const admission = admissionOf(isOpen);
    admission.add(new Secret('a'), a);
    admission.add(new Secret('b'), b);
    expect(admission.admit(presented)).toBe(expected);
  });
});

describe('a token', () => {
  it('that was removed admits no client, and can be assigned to another sandbox', () => {
    const admission = admissionOf(true);
    admission.add(new Secret('t'), a);
    admission.remove(new Secret('t'));
    expect(admission.admit(new Secret('t'))).toBeUndefined();
    expect(admission.add(new Secret('t'), b)).toBe(true);
    expect(admission.admit(new Secret('t'))).toBe(b);
  });

  it('that is assigned to a sandbox cannot be assigned to another', () => {
    const admission = admissionOf(true);
    expect(admission.add(new Secret('t'), a)).toBe(true);
    expect(admission.add(new Secret('t'), b)).toBe(false);
    expect(admission.admit(new Secret('t'))).toBe(a);
  });

  it('is required as soon as isOpen() returns false', () => {
    let isOpen = true;
    const admission = createAdmission({ own, isOpen: () => isOpen, allowClients: undefined });
    expect(admission.admit('none')).toBe(own);
    isOpen = false;
    expect(admission.admit('none')).toBeUndefined();
  });
});

it('lists the listener’s own sandbox and each sandbox with a token, once each', () => {
  const admission = admissionOf(true);
  admission.add(new Secret('1'), a);
  admission.add(new Secret('2'), a);
  admission.add(new Secret('3'), b);
  expect([...admission.sandboxes()]).toEqual([own, a, b]);
});

describe('a connection', () => {
  const tokens = { a: 'token-of-sandbox-a', b: 'token-of-sandbox-b' };
  const withToken = (token: string): string => `Proxy-Authorization: Bearer ${token}`;

  it.each([
    ['another sandbox’s token', [withToken(tokens.b)]],
    ['no token, after one', []],
    ['an unknown token, after a known one', [withToken('token-of-nobody-at-all')]],
  ])('that belongs to one sandbox and presents %s is rejected', async (_, fields) => {
    await using origin = await createOrigin();
    await using proxy = await createTestSidecar({ admin: true });
    for (const [id, token] of Object.entries(tokens))
      await proxy.admin('POST', '/v1/sandboxes', { id, token });
    await using client = await WireClient.connect(proxy.port);
    const at = `127.0.0.1:${origin.port}`;
    const ask = async (more: readonly string[]): Promise<string> => {
      await client.send(head(`GET http://${at}/ HTTP/1.1`, `Host: ${at}`, ...more));
      const { head: response } = await client.readResponse();
      return `${response.status} ${errorOf(response) ?? ''}`;
    };
    expect(await ask([withToken(tokens.a)])).toBe('200 ');
    expect(await ask(fields)).toBe('407 proxy_auth_required');
    expect(origin.requests).toHaveLength(1);
    expect(proxy.records().map(({ sandbox, outcome }) => [sandbox, outcome])).toEqual([
      ['a', 'forwarded'],
      ['a', 'refused'],
    ]);
  });

  it('that got a 407 can present a token afterwards, and then belongs to the sandbox of that token', async () => {
    await using origin = await createOrigin();
    await using proxy = await createTestSidecar({ admin: true });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'a', token: tokens.a });
    await using client = await WireClient.connect(proxy.port);
    const at = `127.0.0.1:${origin.port}`;
    const statuses: number[] = [];
    for (const token of ['token-of-nobody-at-all', tokens.a]) {
      await client.send(head(`GET http://${at}/ HTTP/1.1`, `Host: ${at}`, withToken(token)));
      statuses.push((await client.readResponse()).head.status);
    }
    expect(statuses).toEqual([407, 200]);
    expect(proxy.records().map(({ sandbox }) => sandbox)).toEqual(['default', 'a']);
  });
});
