// Two spliced sockets: half-close is supported, but a side that cannot read any more does not keep the other open.
import { expect, it } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

it('a reset of the host reaches the client as a reset, not as an end', async () => {
  const wasRead = Promise.withResolvers<void>();
  await using origin = await createOrigin({
    async respond({ send, reset }) {
      await send('half');
      await wasRead.promise;
      reset();
    },
  });
  await using proxy = await createTestSidecar();
  await using client = await WireClient.connect(proxy.port);
  await client.openTunnel(`127.0.0.1:${origin.port}`);
  await client.send('GET / HTTP/1.1\r\n\r\n');
  expect(String(await client.readSome())).toBe('half');
  wasRead.resolve();
  expect(await client.finished).toBe('ECONNRESET');
  expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'reset' });
});

it('a reset of the client reaches the host as a reset, not as an end', async () => {
  const seen = Promise.withResolvers<string>();
  await using origin = await createOrigin({
    async respond({ reader }) {
      seen.resolve(await reader.finished);
    },
  });
  await using proxy = await createTestSidecar();
  await using client = await WireClient.connect(proxy.port);
  await client.openTunnel(`127.0.0.1:${origin.port}`);
  await client.send('POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf');
  await origin.request(0);
  client.reset();
  expect(await seen.promise).toBe('ECONNRESET');
  expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'reset' });
});

it('a drain ends a tunnel whose client has half-closed and whose host goes on', async () => {
  const sawEnd = Promise.withResolvers<void>();
  await using origin = await createOrigin({
    async respond({ reader, send }) {
      await reader.finished;
      await send('still here');
      sawEnd.resolve();
      await new Promise(() => {});
    },
  });
  await using proxy = await createTestSidecar({ config: { timeouts: { drain_ms: 50 } } });
  await using client = await WireClient.connect(proxy.port);
  expect((await client.openTunnel(`127.0.0.1:${origin.port}`)).status).toBe(200);
  await client.send('GET / HTTP/1.1\r\n\r\n');
  await origin.request(0);
  client.end();
  await sawEnd.promise;
  expect(String(await client.readSome())).toBe('still here');
  await proxy.sidecar.close();
  expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'reset' });
});
