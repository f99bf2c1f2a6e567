// What makes http-proxy-3 safe to use: no request by fetch, and no target without a decision.
import { afterEach, expect, it, vi } from 'vitest';
import { createForwarder } from '../../src/gateway/forwarder.ts';
import { defaultLimits } from '../../src/gateway/limits.ts';

afterEach(() => vi.unstubAllEnvs());

it('does not start where a variable would have http-proxy-3 send requests by fetch', () => {
  vi.stubEnv('FORCE_FETCH_PATH', 'true');
  expect(() => createForwarder(defaultLimits)).toThrow('FORCE_FETCH_PATH is set: unset it');
});

it('starts without it', () => {
  vi.stubEnv('FORCE_FETCH_PATH', undefined);
  expect(() => createForwarder(defaultLimits).close()).not.toThrow();
});
