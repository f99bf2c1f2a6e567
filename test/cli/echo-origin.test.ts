import { expect, it } from 'vitest';
import { createCallbackEndpoint } from '../../src/cli/echo-origin.ts';

it.each([
  ['a request of the proxy', '{"host": "known.test"}', 200],
  ['a host without credentials', '{"host": "other.test"}', 500],
  ['no body', '', 400],
  ['no object', '[]', 400],
  ['no host', '{"host": 1}', 400],
])('a callback endpoint responds to %s', async (_, body, status) => {
  await using endpoint = await createCallbackEndpoint({
    port: 0,
    headers: (host) => (host === 'known.test' ? { 'X-Key': 'k' } : undefined),
  });
  expect((await fetch(endpoint.url, { method: 'POST', body })).status).toBe(status);
});
