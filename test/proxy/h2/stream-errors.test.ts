// Errors of the proxy itself while a response body is relayed. The listeners of a stream run where nothing catches: an
// exception there would end the process, and with it the connections of every client.
import { afterEach, expect, it, vi } from 'vitest';
import { ResponseWriter } from '../../../src/proxy/h2/response-writer.ts';
import { BodyMask } from '../../../src/proxy/mask/body-mask.ts';
import type { H2Response } from '../../support/h2-wire-client.ts';
import { watchUncaught } from '../../support/uncaught-exception.ts';
import { createH2Path } from './h2-path.ts';

afterEach(() => vi.restoreAllMocks());

function fail(): never {
  throw new TypeError('a defect of the proxy');
}

it.each<readonly [string, string, () => unknown]>([
  ['data', 'the mask', () => vi.spyOn(BodyMask.prototype, 'push').mockImplementationOnce(fail)],
  ['data', 'the writer', () => vi.spyOn(ResponseWriter.prototype, 'add').mockImplementationOnce(fail)],
  ['end', 'the mask', () => vi.spyOn(BodyMask.prototype, 'end').mockImplementationOnce(fail)],
  ['end', 'the writer', () => vi.spyOn(ResponseWriter.prototype, 'end').mockImplementationOnce(fail)],
])('an exception at %s in %s ends its stream only', async (_, __, breakPart) => {
  using uncaught = watchUncaught();
  const gates = { '/beside': Promise.withResolvers<void>(), '/broken': Promise.withResolvers<void>() };
  await using path = await createH2Path({
    origin: {
      async respond({ request, head, data }) {
        await head(200);
        await data('first');
        await gates[request.path as keyof typeof gates].promise;
        await data(' last', { isEnd: true });
      },
    },
    proxy: { config: { scrub: 'body' } },
  });
  const client = await path.client();
  const open = async (name: string): Promise<{ readonly response: Promise<H2Response> }> => {
    const stream = await client.open(client.fields(name), { isEnd: true });
    await client.peer.until(() => stream.length > 0 || undefined, 'the first piece');
    return { response: Promise.race([client.response(stream), uncaught.thrown]) };
  };
  const beside = await open('/beside');
  const broken = await open('/broken');
  breakPart();
  gates['/broken'].resolve();
  expect(await broken.response).toMatchObject({ status: 200, reset: 'INTERNAL_ERROR' });
  gates['/beside'].resolve();
  expect(await beside.response).toMatchObject({ status: 200, text: 'first last', reset: undefined });
  expect(await path.proxy.record(0)).toMatchObject({
    path: '/broken',
    outcome: 'failed',
    reason: 'internal_error',
  });
  expect(await path.proxy.record(1)).toMatchObject({ path: '/beside', outcome: 'injected' });
  expect(path.proxy.lines).toContainEqual(
    expect.objectContaining({ msg: 'exchange failed', error: 'TypeError' }),
  );
});
