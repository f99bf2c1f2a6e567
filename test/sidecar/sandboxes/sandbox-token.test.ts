// Tokens of sandboxes: made ones are told once and cannot be guessed, given ones are nobody's yet.
import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { type Admission, createAdmission } from '../../../src/proxy/accept/admission.ts';
import type { ProxyContext } from '../../../src/proxy/context.ts';
import { givenToken } from '../../../src/sidecar/sandboxes/sandbox-token.ts';

function admissionWith(text: string): Admission {
  const own = { sandbox: 'default' } as ProxyContext;
  const admission = createAdmission({ own, isOpen: () => true, allowClients: undefined });
  admission.add(new Secret(text), { sandbox: 'box' } as ProxyContext);
  return admission;
}

it('none is wanted, none is given', () => {
  expect(givenToken(undefined, admissionWith('x'))).toBeUndefined();
});

it('one that is made has 256 bits, fits into a URL and is told', () => {
  const made = Array.from({ length: 100 }, () => givenToken('made'));
  const reported = made.map((one) => (typeof one === 'object' ? one.reported : undefined));
  expect(new Set(reported).size).toBe(100);
  for (const text of reported) expect(text).toMatch(/^[A-Za-z0-9_-]{43}$/);
  for (const one of made) expect(typeof one === 'object' && one.secret.equals(one.reported ?? '')).toBe(true);
});

it('one that is given is not told, and is taken as it is', () => {
  const wanted = new Secret('free');
  expect(givenToken(wanted, admissionWith('other'))).toEqual({ secret: wanted, reported: undefined });
  expect(givenToken(wanted)).toEqual({ secret: wanted, reported: undefined });
});

it('one that lets clients of a sandbox in already is taken', () => {
  expect(givenToken(new Secret('same'), admissionWith('same'))).toBe('taken');
});
