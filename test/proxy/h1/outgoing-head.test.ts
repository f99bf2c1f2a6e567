// What is sent: no hop-by-hop fields and no proxy token; the injected field once, last; and in responses nothing that leads
// the client around the proxy or shows it the secret.
import { describe, expect, it } from 'vitest';
import { createDataPath, head, secret } from '../data-path.ts';

const injected = ['Authorization', `Bearer ${secret}`] as const;

describe('of a request', () => {
  const rows: readonly (readonly [string, readonly string[], readonly (readonly [string, string])[]])[] = [
    ['the credential takes the place of the agent’s', ['Authorization: Bearer agent'], []],
    ['of the agent’s twice, in two cases', ['AUTHORIZATION: Bearer a', 'authorization: Bearer b'], []],
    ['Connection cannot strip the credential', ['Connection: authorization'], []],
    [
      'what Connection names ends here',
      ['Connection: X-Hop, keep-alive', 'X-Hop: 1', 'x-hop: 2', 'X-Hopper: 3'],
      [['X-Hopper', '3']],
    ],
    [
      'fields of one hop end here',
      ['Keep-Alive: 5', 'TE: trailers', 'Trailer: X', 'Proxy-Connection: keep-alive'],
      [],
    ],
    [
      'proxy credentials end here',
      ['Proxy-Authorization: Basic eDp5', 'Proxy-Authenticate: x', 'Proxy-Status: x'],
      [],
    ],
    [
      'what would rewrite the judged path ends here',
      ['X-Original-URL: /admin', 'X_Rewrite_Url: /a', 'X-Forwarded-Uri: /b'],
      [],
    ],
    [
      'others keep order, case and bytes',
      ['b: 1', 'A:2', 'b:  3', 'X-Empty:', 'Cookie: a=b'],
      [
        ['b', '1'],
        ['A', '2'],
        ['b', '3'],
        ['X-Empty', ''],
        ['Cookie', 'a=b'],
      ],
    ],
    [
      'names like the injected one are kept',
      ['Authorization-Info: x', 'XAuthorization: y'],
      [
        ['Authorization-Info', 'x'],
        ['XAuthorization', 'y'],
      ],
    ],
  ];
  it.each(rows)('%s', async (_, sent, kept) => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`, ...sent));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.headers).toEqual([['Host', path.authority], ...kept, injected]);
  });

  it('a name with underscores for hyphens counts as the injected one', async () => {
    await using path = await createDataPath({
      proxyConfig: {
        rules: [
          { match_hosts: ['api.test'], headers: [{ name: 'X-Api-Key', type: 'plaintext', value: 'ours' }] },
        ],
      },
    });
    const client = await path.tunnel();
    await client.send(
      head('GET / HTTP/1.1', `Host: ${path.authority}`, 'X_Api_Key: a', 'x-api_key: b', 'X-API-KEY: c'),
    );
    await client.readResponse();
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', path.authority],
      ['X-Api-Key', 'ours'],
    ]);
  });

  it('without a rule nothing but the hop’s own is touched', async () => {
    await using path = await createDataPath({ isClear: true });
    const client = await path.plain();
    const at = `plain.test:${path.origin.port}`;
    await client.send(
      head(
        `GET http://${at}/ HTTP/1.1`,
        `Host: ${at}`,
        'Authorization: mine',
        'X-Original-URL: /x',
        'TE: trailers',
      ),
    );
    await client.readResponse();
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', at],
      ['Authorization', 'mine'],
      ['X-Original-URL', '/x'],
    ]);
  });
});

describe('of a response', () => {
  async function relayed(...fields: string[]): Promise<string> {
    await using path = await createDataPath({
      respond: ({ send }) =>
        send(Buffer.from(head('HTTP/1.1 200 OK', ...fields, 'Content-Length: 0'), 'latin1')),
    });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    return (await client.readHead()).text;
  }

  it.each([
    ['Alt-Svc', 'Alt-Svc: h3="evil.test:443"'],
    ['alt-svc in another case', 'alt-SVC: clear'],
    ['Keep-Alive', 'Keep-Alive: timeout=5'],
    ['Proxy-Status', 'Proxy-Status: x'],
    ['what Connection names', 'Connection: X-Hop\r\nX-Hop: 1'],
    ['Upgrade without 101', 'Upgrade: h2,h2c\r\nConnection: Upgrade'],
  ])('%s is dropped', async (_, field) => {
    expect(await relayed('A: 1', field, 'B: 2')).toBe(
      head('HTTP/1.1 200 OK', 'A: 1', 'B: 2', 'Content-Length: 0'),
    );
  });

  it.each([
    ['raw', `X-Echo: Bearer ${secret}`],
    ['in base64', `X-Echo: ${Buffer.from(`x:${secret}`).toString('base64')}`],
    ['in percent escapes', `Location: /?t=${secret.replaceAll('-', '%2D')}`],
    ['in a cookie', `Set-Cookie: t=${secret}; Path=/`],
  ])('the secret %s is masked at its length', async (_, field) => {
    const text = await relayed(field);
    expect(text).toHaveLength(head('HTTP/1.1 200 OK', field, 'Content-Length: 0').length);
    expect(text).not.toContain(secret);
    expect(text).toContain('*****');
    expect(decodeURIComponent(text)).not.toContain(secret);
  });

  it('the secret is masked in interim responses too', async () => {
    await using path = await createDataPath({
      respond: ({ send }) =>
        send(`HTTP/1.1 103 Early\r\nLink: <${secret}>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`),
    });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readHead()).headers).toEqual([['Link', `<${'*'.repeat(secret.length)}>`]]);
  });

  it('the secret of a rule is masked on its host even where no path matched', async () => {
    await using path = await createDataPath({
      proxyConfig: {
        rules: [
          {
            match_hosts: ['api.test'],
            match_paths: ['/v1/*'],
            headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
          },
        ],
      },
      respond: ({ send }) => send(`HTTP/1.1 200 OK\r\nX-Echo: ${secret}\r\nContent-Length: 0\r\n\r\n`),
    });
    const client = await path.tunnel();
    await client.send(head('GET /other HTTP/1.1', `Host: ${path.authority}`, 'Authorization: mine'));
    expect((await client.readHead()).headers).toContainEqual(['X-Echo', '*'.repeat(secret.length)]);
    expect(path.origin.requests[0]?.headers).toContainEqual(['Authorization', 'mine']);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'forwarded', reason: 'no_path_match' });
  });
});
