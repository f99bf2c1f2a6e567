// The record of a callback that failed, as an operator finds it in the log.
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { createOrigin, response } from '../../support/recording-origin.ts';
import { type LogRecord, spawnSallyport } from '../../support/spawned-process.ts';
import { WireClient } from '../../support/wire-client.ts';

const CANARY = 'c4n4ry-4f1c9a';

/** The record of a request for a host whose callback is `url`. */
async function recordOf(url: string): Promise<LogRecord> {
  const callback = { name: 'minter', match_hosts: ['api.test'], url, ttl_seconds: 60 };
  await using sallyport = await spawnSallyport({ proxyConfig: { callbacks: [callback] } });
  const ca = await readFile(sallyport.caFile, 'utf8');
  await using client = await WireClient.connectThrough(sallyport.port, 'api.test:443', {
    ca,
    name: 'api.test',
  });
  await client.send('GET / HTTP/1.1\r\nHost: api.test\r\n\r\n');
  expect((await client.readResponse()).head.status).toBe(502);
  return await sallyport.process.record(({ msg }) => msg === 'exchange');
}

it('names the callback, with level warn', async () => {
  expect(await recordOf('http://127.0.0.1:1/')).toMatchObject({
    level: 'warn',
    reason: 'callback_failed',
    callback: 'minter',
    cause: 'transport failed: ECONNREFUSED',
  });
});

it('has the status and the content type of the response, and nothing else of it', async () => {
  const page = response(200, [['Content-Type', 'text/html; charset=utf-8']], `<h1>${CANARY}</h1>`);
  await using origin = await createOrigin({ respond: (exchange) => exchange.send(page) });
  const record = await recordOf(`http://127.0.0.1:${origin.port}/`);
  expect(record['cause']).toBe('status 200, text/html: body is not JSON in UTF-8');
  expect(JSON.stringify(record)).not.toContain(CANARY);
});
