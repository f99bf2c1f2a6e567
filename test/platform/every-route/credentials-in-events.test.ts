// A key or a token in the wrong place of a request to any tracked route: the events that the requests leave contain no
// part of it, for it could not be removed from the log.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
beforeAll(async () => {
  api = await createPlatformApi();
});
afterAll(() => api[Symbol.asyncDispose]());

it('no event contains a key or a token, whatever path, query, body or header it was sent in', async () => {
  const organization = await api.addOrganization();
  const tenant = await api.addWorkspace(organization);
  const key = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
  const misplaced = [key, mintKey('sandbox').text];
  const tracked = api.routes.filter(({ tracking }) => 'operation' in tracking);
  expect(tracked.length).toBeGreaterThan(15);
  for (const { method, path } of tracked)
    for (const text of misplaced) {
      const first = `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`;
      for (const spelled of [text, first]) {
        const asked = path.replaceAll(/\{\w+\}/g, spelled);
        const headers = {
          'x-forwarded-for': `${text}, ::1%${text}, 192.0.2.7`,
          'x-request-id': text,
          'user-agent': text,
          referer: `http://${text}/`,
          cookie: `key=${text}`,
        };
        const send = (query: string, more: { readonly tenant?: string; readonly organization?: string }) =>
          api.ask(method, `${asked}${query}`, {
            key,
            peer: `fe80::1%${text}`,
            headers,
            ...(method === 'GET' ? {} : { body: { [text]: text, description: text } }),
            ...more,
          });
        await send(`?key=${text}`, { tenant });
        await send('', { tenant: text, organization: text });
      }
    }
  const events = await api.database.owner.db.selectFrom('audit_events').selectAll().execute();
  expect(events.length).toBeGreaterThan(tracked.length * misplaced.length);
  const log = JSON.stringify(events);
  for (const text of misplaced) expect(log).not.toContain(text.slice(6, 22));
  expect(log).toContain('{api_key_id}');
});
