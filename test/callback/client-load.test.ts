// The HTTP client of callbacks is loaded by the first call, which can fail: no free file descriptor, a replaced file.
import { beforeEach, expect, it, vi } from 'vitest';
import { createCallbackClient } from '../../src/callback/client.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';
import { good, originOf } from './single-call.ts';

const SETTINGS = { vet: vetLoopback, trust: undefined, timeoutMs: 10_000 };
const TARGET = authorityOf('api.test:8443');

const load = vi.hoisted(() => ({ attempts: 0 }));

vi.mock('undici', async (importOriginal) => {
  const original = await importOriginal();
  return {
    get default(): unknown {
      load.attempts += 1;
      if (load.attempts === 1) throw new Error('EMFILE: too many open files');
      return original;
    },
  };
});

beforeEach(() => {
  load.attempts = 0;
});

it('loads the HTTP client again for the next call after a load that failed', async () => {
  await using origin = await originOf(good);
  const client = createCallbackClient(SETTINGS);
  const callback = compiledCallback(`http://127.0.0.1:${origin.port}/`);
  expect(await client.call(callback, TARGET)).toMatchObject({ ok: false });
  expect(await client.call(callback, TARGET)).toMatchObject({ ok: true });
  expect(load.attempts).toBe(2);
  await client.close();
});

it('closes after a load that failed', async () => {
  const client = createCallbackClient(SETTINGS);
  const call = client.call(compiledCallback('http://127.0.0.1:1/'), TARGET);
  await client.close();
  expect(await call).toMatchObject({ ok: false });
  expect(load.attempts).toBe(1);
});
