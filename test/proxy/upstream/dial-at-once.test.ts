// Where the system refuses a connection before connect() returns, as an IPv6 address on a machine without IPv6: the
// error must find its listeners, or it ends the process. No packet leaves: the address is loopback's broadcast address.
import { expect, it } from 'vitest';
import { createDataPath, errorOf, head } from '../data-path.ts';

const names = { 'api.test': ['127.255.255.255'], 'endpoint.test': ['127.255.255.255'] };

it.each([
  ['a host', undefined, 'upstream_unreachable', 'ENETUNREACH'],
  ['a callback over TLS', 'https://endpoint.test/', 'callback_failed', 'transport failed: ENETUNREACH'],
  ['a callback in the clear', 'http://endpoint.test/', 'callback_failed', 'transport failed: ENETUNREACH'],
])('%s that cannot be connected to is a 502 that says so', async (_, url, error, cause) => {
  const callbacks = [{ match_hosts: ['api.test'], url, ttl_seconds: 60 }];
  await using path = await createDataPath({
    names,
    ...(url === undefined ? {} : { proxyConfig: { callbacks } }),
  });
  const client = await path.tunnel();
  await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
  const { head: response } = await client.readResponse();
  expect([response.status, errorOf(response)]).toEqual([502, error]);
  expect(await path.proxy.record(0)).toMatchObject({ reason: error, cause });
});
