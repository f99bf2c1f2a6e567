// A credential that authenticates the connection would authenticate every later request on it.
import { expect, it } from 'vitest';
import { createDataPath, head } from '../data-path.ts';

it.each([
  ['Negotiate {TOKEN}', [0, 1, 1]],
  ['NTLM {TOKEN}', [0, 1, 1]],
  ['nEGOTIATE {TOKEN}', [0, 1, 1]],
  ['Bearer {TOKEN}', [0, 0, 0]],
])('a connection that carried %s for one path carries no request for another', async (value, connections) => {
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value }];
  const rule = { match_hosts: ['api.test'], match_paths: ['/covered'], headers };
  await using path = await createDataPath({ proxyConfig: { rules: [rule] } });
  for (const target of ['/covered', '/other', '/other']) {
    const client = await path.tunnel();
    await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
  }
  expect(path.origin.requests.map(({ connection }) => connection)).toEqual(connections);
});
