// Rules that change while a request waits for its upstream: what was revoked is not sent any more.
import { expect, it } from 'vitest';
import { apiRule, createDataPath, errorOf, head, secret } from './data-path.ts';

function gated(): { names: Record<string, Promise<readonly string[]>>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  return { names: { 'api.test': promise }, open: () => resolve(['127.0.0.1']) };
}

it('a rule removed while its host is looked up injects nothing', async () => {
  const { names, open } = gated();
  await using path = await createDataPath({ names });
  const client = await path.tunnel();
  await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
  await expect.poll(() => path.proxy.lookups).toEqual(['api.test']);
  expect(path.proxy.apply({ rules: [] })).toMatchObject({ ok: true });
  open();
  expect((await client.readResponse()).head.status).toBe(200);
  expect(path.origin.transcripts.join('')).not.toContain(secret);
  expect(await path.proxy.record(0)).toMatchObject({ revision: 2, outcome: 'forwarded', reason: 'no_match' });
});

it('a host denied while it is looked up receives nothing', async () => {
  const { names, open } = gated();
  await using path = await createDataPath({ names });
  const client = await path.tunnel();
  await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
  await expect.poll(() => path.proxy.lookups).toEqual(['api.test']);
  path.proxy.apply({ rules: [], access_control: { deny_list: ['api.test'] } });
  open();
  const { head: response } = await client.readResponse();
  expect([response.status, errorOf(response)]).toEqual([403, 'access_denied']);
  expect(path.origin.requests).toEqual([]);
});

it.each([
  ['denied', { access_control: { deny_list: ['late.test'] } }, [403, 'access_denied']],
  ['given to a rule', { rules: [{ ...apiRule, match_hosts: ['late.test'] }] }, [503, 'rules_changed']],
])('a tunnel whose host is %s while it is looked up does not open', async (_, document, response) => {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  await using path = await createDataPath({ names: { 'late.test': promise } });
  const client = await path.plain();
  const authority = `late.test:${path.origin.port}`;
  await client.send(head(`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`));
  await expect.poll(() => path.proxy.lookups).toEqual(['late.test']);
  expect(path.proxy.apply(document)).toMatchObject({ ok: true });
  resolve(['127.0.0.1']);
  const { head: refused } = await client.readResponse();
  expect([refused.status, errorOf(refused)]).toEqual(response);
  expect(path.origin.transcripts.join('')).toBe('');
});
