import { expect, it } from 'vitest';
import { createReservedHost } from '../../../src/proxy/local/reserved-host.ts';

const certificates = { caPem: '', bundle: [Buffer.alloc(0)], fingerprint: '00' };

it('a client gets ten requests in any second, whatever another one sends', () => {
  let now = 0;
  const host = createReservedHost({ name: 'sallyport.internal', certificates, now: () => now });
  const taken = (client: string | undefined, count: number): number =>
    Array.from({ length: count }, () => host.take(client)).filter(Boolean).length;
  expect(taken('10.0.0.1', 12)).toBe(10);
  expect(taken('10.0.0.2', 12)).toBe(10);
  expect(taken(undefined, 12)).toBe(10);
  now = 999;
  expect(taken('10.0.0.1', 1)).toBe(0);
  now = 1_000;
  expect(taken('10.0.0.1', 12)).toBe(10);
});
