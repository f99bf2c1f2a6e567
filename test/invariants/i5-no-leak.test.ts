// I5: no secret, raw or encoded, in a head that the sandbox reads, a log line, a record, an error, a response of the
// admin API, a state file or an environment. test/e2e/canary.test.ts searches the output of the whole command; here each
// guard is tested alone.
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format, inspect } from 'node:util';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { parseReply } from '../../src/callback/reply.ts';
import { readDocument } from '../../src/cli/document.ts';
import { formatIssues } from '../../src/cli/issue-lines.ts';
import { caFiles, prepareState } from '../../src/cli/settings.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { loadAdminToken } from '../../src/sidecar/access-tokens.ts';
import { parseConfig } from '../../src/sidecar/config.ts';
import { parseSecretDocument } from '../../src/sidecar/sandboxes/secret-document.ts';
import { withoutSecretVariables } from '../../src/sidecar/secret-environment.ts';
import { readStateKey } from '../../src/sidecar/state/state-store.ts';
import { loadWorkspaceSecrets } from '../../src/sidecar/sandboxes/workspace-secrets.ts';
import {
  createCertificateAuthority,
  loadOrCreateCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { sandboxesWith, secretChangesWith, secretEverywhere } from '../e2e/canary-documents.ts';
import { findLeaks } from '../e2e/canary-search.ts';
import { textCanary } from '../e2e/canary-values.ts';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type Exchange, response } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import { createScene, head, type Scene } from './credential-scene.ts';

/** Quotes and a backslash, which JSON escapes; percent signs and delimiters; bytes that base64 encodes as `+` and `/`. */
const CANARY = 'q7Zr"\\%x2Hb~>>Lw9u??+Kd4/=&Vn3sTy8e';
/** With all its forms, more than a search of a head takes. */
const LARGE_BYTES = 6_000;
const canaries = [textCanary('the secret', CANARY)];
const leaksIn = (place: string, text: unknown): readonly string[] =>
  findLeaks(place, Buffer.from(typeof text === 'string' ? text : JSON.stringify(text)), canaries);

// The error quotes the secret, which must not leak.
const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => `quoted: ${CANARY}`);
});
vi.mock('../../src/policy/compile.ts', async (original) => breakable.compile(await original()));
beforeEach(() => broken.clear());

const opaque = (name: string): unknown => ({ name, type: 'opaque', value: `Bearer ${CANARY}` });

async function createCanaryScene(options: Parameters<typeof createScene>[0] = {}): Promise<Scene> {
  return createScene({
    rules: [{ match_hosts: ['api.test'], match_paths: ['/in/*'], headers: [opaque('Authorization')] }],
    ...options,
  });
}

/** Everything that the agent reads after one request. */
async function ask(scene: Scene, path = '/in/1', fields: readonly string[] = []): Promise<string> {
  await using client = await scene.tunnel();
  await client.send(head(`GET ${path}`, scene.at(), fields.length > 0 ? fields : ['Connection: close']));
  await client.finished;
  return client.transcript;
}

describe('I5 no leak: heads', () => {
  const bytes = Buffer.from(CANARY);
  const value = (text: string): Buffer => response(200, [['X-Echo', text]], 'body');
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const rows: readonly (readonly [where: string, reply: Buffer | string])[] = [
    ['in a field', value(CANARY)],
    ['with its scheme', value(`Bearer ${CANARY}`)],
    ['in the reason phrase', `HTTP/1.1 200 ${CANARY}\r\nContent-Length: 0\r\n\r\n`],
    ['as a part of a URL', value(`/?key=${encodeURIComponent(CANARY)}`)],
    ['in base64', value(base64(CANARY))],
    ['in base64 after one byte', value(base64(`:${CANARY}`))],
    ['in base64 after two bytes', value(base64(`u:${CANARY}`))],
    ['in base64url', value(bytes.toString('base64url'))],
    ['in hex', value(bytes.toString('hex'))],
    ['in upper-case hex', value(bytes.toString('hex').toUpperCase())],
    ['in JSON', value(JSON.stringify({ authorization: CANARY }))],
    [
      'in several fields',
      response(200, [
        ['X-A', CANARY],
        ['Set-Cookie', `a=${CANARY}`],
        ['Link', CANARY],
      ]),
    ],
    [
      'in an early hint',
      `HTTP/1.1 103 ${CANARY}\r\nLink: ${CANARY}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`,
    ],
    ['in a field name', `HTTP/1.1 200 OK\r\nX-${bytes.toString('hex')}: 1\r\nContent-Length: 0\r\n\r\n`],
    [
      'before a chunked body',
      `HTTP/1.1 200 OK\r\nX-A: ${CANARY}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['in a trailer', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Echo: ${CANARY}\r\n\r\n`],
  ];
  it.each(rows)('I5 no leak: the secret in a response head is masked %s', async (_, reply) => {
    await using scene = await createCanaryScene({ respond: ({ send }) => send(reply) });
    const injected = await ask(scene);
    expect(injected).toMatch(/^HTTP\/1\.1 (200|103)/);
    expect(scene.origin.requests[0]?.headers).toContainEqual(['Authorization', `Bearer ${CANARY}`]);
    // The host may also store the secret and send it back where nothing is injected.
    const remembered = await ask(scene, '/elsewhere');
    expect(leaksIn('the response', injected + remembered)).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it.each(rows)('I5 no leak: it is masked beside secrets too large to search for, %s', async (_, reply) => {
    const large = { name: 'X-Large', type: 'opaque', value: randomBytes(LARGE_BYTES).toString('base64') };
    const rule = { match_hosts: ['api.test'], headers: [opaque('Authorization'), large] };
    await using scene = await createCanaryScene({ rules: [rule], respond: ({ send }) => send(reply) });
    const text = await ask(scene);
    expect(text).toMatch(/^HTTP\/1\.1 (200|103)/);
    expect(leaksIn('the response', text)).toEqual([]);
  });

  it('I5 no leak: each part of a credential is masked by itself, also in character references', async () => {
    const cookies = { name: 'Cookie', type: 'opaque', value: `sid=${CANARY}; view=full` };
    const references = [...CANARY].map((char) => `&#${char.charCodeAt(0)};`).join('');
    const reply = response(200, [
      ['X-Echo', CANARY],
      ['X-Page', references],
    ]);
    const rules = [{ match_hosts: ['api.test'], headers: [cookies] }];
    await using scene = await createCanaryScene({ rules, respond: ({ send }) => send(reply) });
    const text = await ask(scene);
    expect(text).toMatch(/^HTTP\/1\.1 200/);
    expect(leaksIn('the response', text)).toEqual([]);
    expect(text).not.toContain('&#');
  });

  it('I5 no leak: the secret in the head of a 101 is masked', async () => {
    const fields = ['Connection: upgrade', 'Upgrade: websocket'];
    const lines = [`HTTP/1.1 101 ${CANARY}`, ...fields, `X-Echo: ${CANARY}`, '', ''];
    await using scene = await createCanaryScene({
      respond: ({ send, end }) => send(lines.join('\r\n')).then(end),
    });
    const reply = await ask(scene, '/in/1', fields);
    expect(reply).toMatch(/^HTTP\/1\.1 101/);
    expect(leaksIn('the response', reply)).toEqual([]);
  });

  it('I5 no leak: a value from a callback is masked when the host sends it back', async () => {
    await using callback = await createCallbackEndpoint({ headers: { 'X-Key': CANARY } });
    await using scene = await createCanaryScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
      respond: ({ send }) => send(response(302, [['Location', `/${CANARY}`]])),
    });
    // The value of the call, and then the cached one.
    const responses = [await ask(scene), await ask(scene)];
    expect(scene.origin.requests.map(({ headers }) => headers.some(([, got]) => got === CANARY))).toEqual([
      true,
      true,
    ]);
    expect(leaksIn('the responses', responses.join('\n'))).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });
});

describe('I5 no leak: the reserved host', () => {
  it.each(['/', '/status', '/env', '/ca.pem', '/x'])(
    'I5 no leak: %s contains no value and no token',
    async (path) => {
      const headers = [
        { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
        { name: 'X-Opaque', type: 'opaque', value: CANARY },
        { name: 'X-Plain', type: 'plaintext', value: CANARY },
      ];
      await using proxy = await createTestSidecar({
        proxyConfig: {
          rules: [{ match_hosts: ['api.test'], headers, env_vars: { API_KEY: 'placeholder' } }],
        },
        secrets: { TOKEN: CANARY },
      });
      await using client = await WireClient.connect(proxy.port);
      // A refusal whose record could quote the request.
      await client.send(
        head(`GET http://api.test/?${encodeURIComponent(CANARY)}`, 'api.test', [`X-Sent: ${CANARY}`]),
      );
      await client.readResponse();
      await client.send(
        head(`GET http://sallyport.internal${path}`, 'sallyport.internal', [`X-Sent: ${CANARY}`]),
      );
      await client.readResponse();
      expect(leaksIn(path, client.transcript)).toEqual([]);
    },
  );
});

describe('I5 no leak: scrubbed bodies', () => {
  const headers = [opaque('Authorization')];
  const rule = { match_hosts: ['api.test'], match_paths: ['/in/*'], headers };
  const byRule = { rules: [{ ...rule, scrub: 'body' }] };
  const byOperator = { config: () => ({ scrub: 'body' }) };
  const half = CANARY.length >> 1;
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const chunked = (...pieces: string[]): string =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${pieces.map(chunk).join('')}0\r\n\r\n`;
  const rows: readonly (readonly [string, Buffer | string, object])[] = [
    ['unencoded, by the rule', response(200, [], `a ${CANARY}`), byRule],
    ['unencoded, by the operator', response(200, [], `a ${CANARY}`), byOperator],
    ['in JSON', response(200, [], JSON.stringify({ authorization: `Bearer ${CANARY}` })), byRule],
    ['in a URL', response(200, [], encodeURIComponent(CANARY)), byRule],
    [
      'with every byte escaped',
      response(200, [], [...CANARY].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('')),
      byRule,
    ],
    [
      'in character references',
      response(200, [], [...CANARY].map((char) => `&#x${char.charCodeAt(0).toString(16)};`).join('')),
      byRule,
    ],
    ['in base64', response(200, [], Buffer.from(`user:${CANARY}`).toString('base64')), byRule],
    ['in two chunks', chunked(CANARY.slice(0, half), CANARY.slice(half)), byRule],
    ['in one-byte chunks', chunked(...CANARY), byOperator],
    ['that ends with the connection', `HTTP/1.0 200 OK\r\n\r\n${CANARY}`, byRule],
  ];
  it.each(rows)('I5 no leak: the secret in a body is masked %s', async (_, reply, options) => {
    const respond = ({ send, end }: Exchange): Promise<void> => send(reply).then(end);
    await using scene = await createCanaryScene({ respond, ...options });
    const injected = await ask(scene);
    expect(injected).toMatch(/^HTTP\/1\.[01] 200[\s\S]*\*{8}/);
    const remembered = await ask(scene, '/elsewhere');
    expect(leaksIn('the response', injected + remembered)).toEqual([]);
    expect(await scene.proxy.record(1)).toMatchObject({ outcome: 'forwarded', scrubbed: 1 });
  });

  it.each([
    ['head', response(200, [['X-Echo', CANARY]], 'body')],
    ['body', response(200, [], `a ${CANARY}`)],
  ])('I5 no leak: a host whose response is one piece, with the secret in its %s', async (_, reply) => {
    await using scene = await createCanaryScene({ respond: ({ send }) => send(reply), ...byRule });
    await using client = await scene.tunnel();
    // Without Connection: close, a response without a secret is relayed unchanged.
    for (const path of ['/in/1', '/in/2', '/elsewhere']) {
      await client.send(head(`GET ${path}`, scene.at()));
      expect((await client.readResponse()).head.status).toBe(200);
    }
    expect(client.transcript).toMatch(/\*{8}/);
    expect(leaksIn('the responses', client.transcript)).toEqual([]);
  });

  it('I5 no leak: a value from a callback in a body is masked', async () => {
    await using callback = await createCallbackEndpoint({ headers: { 'X-Key': CANARY } });
    await using scene = await createCanaryScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60, scrub: 'body' }],
      respond: ({ send }) => send(response(200, [], CANARY)),
    });
    const reply = await ask(scene);
    expect(reply).toMatch(/^HTTP\/1\.1 200[\s\S]*\*{8}/);
    expect(leaksIn('the response', reply)).toEqual([]);
  });

  it('I5 no leak: a content-coded body is rejected', async () => {
    const respond = ({ send }: Exchange): Promise<void> =>
      send(response(200, [['Content-Encoding', 'x-plain']], CANARY));
    await using scene = await createCanaryScene({ respond, ...byRule });
    const reply = await ask(scene);
    expect(reply).toMatch(/^HTTP\/1\.1 502 [\s\S]*X-Sallyport-Error: scrub_impossible/);
    expect(leaksIn('the response', reply)).toEqual([]);
  });

  it('I5 no leak: a client cannot request a part of a body', async () => {
    await using scene = await createCanaryScene({
      respond: ({ send }) => send(response(200, [], 'x')),
      ...byRule,
    });
    await ask(scene, '/in/1', ['Range: bytes=0-7', 'Accept-Encoding: gzip', 'Connection: close']);
    expect(scene.origin.requests[0]?.headers.map(([name]) => name)).not.toContain('Range');
    expect(scene.origin.requests[0]?.headers.map(([name]) => name)).not.toContain('Accept-Encoding');
  });

  it('I5 no leak: a body that is truncated inside the secret does not disclose it', async () => {
    const begun = `HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${CANARY.slice(0, -1)}`;
    const respond = ({ send, end }: Exchange): Promise<void> => send(begun).then(end);
    await using scene = await createCanaryScene({ respond, ...byRule });
    expect(await ask(scene)).toMatch(/\r\n\r\n$/);
  });
});

describe('I5 no leak: failures', () => {
  const rows: readonly (readonly [how: string, reply: (exchange: Exchange) => Promise<void> | void])[] = [
    ['that is not HTTP', ({ send, end }) => send(`${CANARY}\r\n\r\n`).then(end)],
    ['with an invalid field line', ({ send, end }) => send(`HTTP/1.1 200 OK\r\n${CANARY}\r\n\r\n`).then(end)],
    [
      'with two lengths',
      ({ send }) => send(`HTTP/1.1 200 ${CANARY}\r\nContent-Length: 1\r\nContent-Length: ${CANARY}\r\n\r\n`),
    ],
    ['that asks for proxy credentials', ({ send }) => send(response(407, [['Proxy-Authenticate', CANARY]]))],
    ['that is truncated', ({ send, end }) => send(`HTTP/1.1 200 ${CANARY}\r\nX: ${CANARY}`).then(end)],
    ['that is a reset', ({ reset }) => reset()],
  ];
  it.each(rows)('I5 no leak: the secret is not in the refusal after a response %s', async (_, respond) => {
    await using scene = await createCanaryScene({ respond });
    const reply = await ask(scene);
    expect(reply).toMatch(/^HTTP\/1\.1 502/);
    expect(leaksIn('the refusal', reply)).toEqual([]);
    await scene.proxy.record(0);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: the record of an injection contains the name of the header but not its value', async () => {
    await using scene = await createCanaryScene({ respond: ({ send }) => send(response(200, [])) });
    await ask(scene);
    expect(await scene.proxy.record(0)).toMatchObject({ outcome: 'injected', injected: ['Authorization'] });
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: an internal error is logged with its kind and place, without its message', async () => {
    await using scene = await createCanaryScene();
    broken.add('decide');
    const reply = await ask(scene);
    expect(reply).toMatch(/^HTTP\/1\.1 500/);
    await scene.proxy.record(0);
    expect(scene.proxy.lines).toContainEqual(expect.objectContaining({ error: 'TypeError' }));
    expect(leaksIn('the refusal', reply)).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  const replies: readonly (readonly [flaw: string, reply: string])[] = [
    ['invalid JSON', `{"headers": {"A": ${CANARY}}`],
    ['a string for an object', JSON.stringify({ headers: CANARY })],
    ['a name', JSON.stringify({ headers: { [CANARY]: 'x' } })],
    ['a value', JSON.stringify({ headers: { A: `${CANARY}\r\n` } })],
    ['a list for a value', JSON.stringify({ headers: { A: [CANARY] } })],
    ['a repeated name', `{"headers": {}, "${CANARY.replaceAll(/["\\]/g, '')}": 1, "headers": {}}`],
  ];
  it.each(replies)(
    'I5 no leak: the reason for a failed callback does not contain the secret in %s',
    (_, reply) => {
      const parsed = parseReply(Buffer.from(reply));
      expect(parsed.ok).toBe(false);
      expect(leaksIn('the reason', parsed)).toEqual([]);
    },
  );
});

describe('I5 no leak: what the operator reads', () => {
  it('I5 no leak: the record of a failed callback does not quote the content type of the response', async () => {
    await using callback = await createCallbackEndpoint(response(500, [['Content-Type', `text/${CANARY}`]]));
    await using scene = await createCanaryScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
    });
    expect(await ask(scene)).toMatch(/^HTTP\/1\.1 502/);
    const record = await scene.proxy.record(0);
    expect(record).toMatchObject({ reason: 'callback_failed', cause: 'status 500, another content type' });
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: no issue of a document shows how long a secret is', () => {
    const header = { type: 'workspace_secret', value: '{TOKEN}' };
    const headers = Array.from({ length: 33 }, (_, i) => ({ ...header, name: `X-${i}` }));
    const hosts = ['a.test', 'b.test'].map((host) => ({ match_hosts: [host], headers }));
    const parsed = parseProxyConfig({ rules: hosts });
    if (!parsed.ok) throw new Error('the document must be valid');
    const issues = [7_777, 7_778].map((length) =>
      compileProxyConfig(parsed.value, () => new Secret('v'.repeat(length)), 1),
    );
    expect(issues[0]).toMatchObject({ ok: false });
    expect(issues[0]).toEqual(issues[1]);
  });
});

describe('I5 no leak: the state directory', () => {
  const PUBLIC = ['public/ca.pem'];

  /** The files below the directories that every user may enter, whatever the modes of the files. */
  async function reachableIn(directory: string, prefix = ''): Promise<readonly string[]> {
    const found: string[] = [];
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (!entry.isDirectory()) found.push(prefix + entry.name);
      else if (((await stat(path)).mode & 0o005) !== 0)
        found.push(...(await reachableIn(path, `${prefix}${entry.name}/`)));
    }
    return found.toSorted();
  }

  const states: readonly (readonly [string, (directory: string) => Promise<unknown>])[] = [
    ['that is new', async () => undefined],
    [
      'whose secret part others may enter',
      async (directory) => {
        await mkdir(join(directory, 'secret'));
        await chmod(join(directory, 'secret'), 0o777);
      },
    ],
    [
      'of an older version',
      async (directory) => {
        const { privateKeyPem, certificatePem } = createCertificateAuthority();
        await writeFile(join(directory, 'ca.key'), privateKeyPem, { mode: 0o600 });
        await writeFile(join(directory, 'ca.pem'), certificatePem);
        await loadAdminToken({ file: join(directory, 'admin-token') });
        await using proxy = await createTestSidecar({ admin: true, state: directory });
        expect((await proxy.admin('PUT', '/v1/workspace_secrets', { B: CANARY })).status).toBe(200);
      },
    ],
  ];
  it.each(states)(
    'I5 no leak: of a directory %s other users reach the public files only',
    async (_, prepare) => {
      await using scratch = await createScratch();
      const config = { stateDir: scratch.path, ca: undefined };
      await prepare(scratch.path);
      await chmod(scratch.path, 0o755);
      await prepareState(config);
      await loadOrCreateCertificateAuthority(caFiles(config));
      expect(await reachableIn(scratch.path)).toEqual(PUBLIC);
      expect(await readdir(join(scratch.path, 'secret'))).toContain('ca.key');
    },
  );
});

describe('I5 no leak: the admin API', () => {
  const document = {
    rules: [
      {
        match_hosts: ['api.test'],
        headers: [opaque('A'), { name: 'B', type: 'workspace_secret', value: '{B}' }],
      },
    ],
    callbacks: [
      {
        match_hosts: ['c.test'],
        url: 'http://127.0.0.1:9/',
        request_headers: [opaque('X')],
        ttl_seconds: 60,
      },
    ],
  };

  it('I5 no leak: no readable resource and no stored file contains a value', async () => {
    await using scratch = await createScratch();
    await using proxy = await createTestSidecar({ admin: true, state: scratch.path });
    const responses = [
      await proxy.admin('PUT', '/v1/workspace_secrets', { B: CANARY }),
      await proxy.admin('PUT', '/v1/proxy_config', document),
      await proxy.admin('POST', '/v1/sandboxes', {
        id: 'a',
        token: 'token-0123456789',
        workspace_secrets: { B: CANARY },
        proxy_config: document,
      }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 201]);
    const { body } = await proxy.admin('GET', '/');
    // Without an end is the stream of the records, whose lines are those of the log.
    for (const { method, path } of body['routes'] as { method: string; path: string }[])
      if (method === 'GET' && path !== '/v1/records')
        responses.push(await proxy.admin('GET', path.replace('{id}', 'a')));
    expect(responses.filter(({ text }) => text.includes('"is_set":true'))).toHaveLength(2);
    expect(leaksIn('the responses', responses.map(({ text }) => text).join('\n'))).toEqual([]);
    expect(leaksIn('the log', proxy.lines)).toEqual([]);
    const files = await readdir(join(scratch.path, 'sandboxes'));
    expect(files.toSorted()).toEqual(['a.sealed', 'default.sealed']);
    for (const name of files)
      expect(findLeaks(name, await readFile(join(scratch.path, 'sandboxes', name)), canaries)).toEqual([]);
  });

  it('I5 no leak: no refusal quotes its input', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const sent = [
      ...secretEverywhere(CANARY).map((body) => ['PUT', '/v1/proxy_config', body] as const),
      ...sandboxesWith(CANARY).map((body) => ['POST', '/v1/sandboxes', body] as const),
      ...secretChangesWith(CANARY).map((body) => ['PUT', '/v1/workspace_secrets', body] as const),
      ['PUT', '/v1/proxy_config', `{"rules": ${CANARY}`] as const,
    ];
    for (const [method, path, body] of sent) {
      const reply = await proxy.admin(method, path, body);
      expect(reply.status).toBe(422);
      expect(leaksIn(`${method} ${path}`, reply.text)).toEqual([]);
    }
    expect(leaksIn('the log', proxy.lines)).toEqual([]);
  });

  it('I5 no leak: a wrong token is in no response and no record', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const reply = await proxy.admin('PUT', '/v1/proxy_config', {}, [`X-Api-Key: ${CANARY}`]);
    expect(reply.status).toBe(401);
    expect(proxy.lines).toContainEqual(expect.objectContaining({ msg: 'admin', reason: 'wrong_token' }));
    expect([...leaksIn('the response', reply.text), ...leaksIn('the log', proxy.lines)]).toEqual([]);
  });

  it('I5 no leak: an internal error while a document is applied does not disclose it', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    broken.add('compile');
    const reply = await proxy.admin('PUT', '/v1/proxy_config', document);
    expect(reply.status).toBe(500);
    expect(proxy.lines).toContainEqual(expect.objectContaining({ error: 'TypeError' }));
    expect([...leaksIn('the response', reply.text), ...leaksIn('the log', proxy.lines)]).toEqual([]);
  });
});

describe('I5 no leak: input of the operator', () => {
  const refuses = (read: () => unknown): Promise<string> =>
    new Promise((resolve) => resolve(read())).then(
      () => 'nothing was refused',
      (error: unknown) => inspect(error, { depth: 9 }),
    );
  const rows: readonly (readonly [what: string, read: () => unknown])[] = [
    ['a line of secrets', () => parseSecretDocument(`A=1\n${CANARY}\n`, 'FILE')],
    ['a line that begins with a quote', () => parseSecretDocument(`A="${CANARY}`, 'FILE')],
    ['a JSON of secrets', () => parseSecretDocument(`{"A": ${CANARY}}`, 'FILE')],
    [
      'a JSON of secrets with one for a name',
      () => parseSecretDocument(JSON.stringify({ [CANARY]: 'A' }), 'FILE'),
    ],
    ['a JSON of secrets with a list', () => parseSecretDocument(JSON.stringify({ A: [CANARY] }), 'FILE')],
    [
      'a secret that is too long',
      () => loadWorkspaceSecrets({ handed: handed('A', CANARY.repeat(3_000)) }, {}),
    ],
    ['a secret with an invalid name', () => loadWorkspaceSecrets({ handed: handed('1', CANARY) }, {})],
    [
      'a secret that stayed in the environment',
      () => loadWorkspaceSecrets({}, { SALLYPORT_SECRET_A: CANARY }),
    ],
    ['an admin token with a space', () => loadAdminToken({ text: `${CANARY} ${CANARY}`, from: 'VARIABLE' })],
    ['an invalid state key', () => readStateKey({ text: CANARY, from: 'VARIABLE' })],
  ];
  it.each(rows)('I5 no leak: the reason for rejecting %s does not contain the secret', async (_, read) => {
    const reason = await refuses(read);
    expect(reason).toMatch(/^Error: (FILE|VARIABLE|SALLYPORT_SECRET_)/);
    expect(leaksIn('the reason', reason)).toEqual([]);
  });

  it('I5 no leak: the reason for rejecting invalid JSON does not quote it', async () => {
    await using scratch = await createScratch();
    for (const text of [CANARY, `{"a": ${CANARY}}`, `{"a": "${CANARY}`, `{"a": 1, "a": "x", ${CANARY}}`]) {
      const reason = await refuses(async () => readDocument(await scratch.write('document.json', text)));
      expect(reason).toContain('document.json:1:');
      expect(leaksIn('the reason', reason)).toEqual([]);
    }
  });

  it('I5 no leak: the issues of a config do not quote it', () => {
    const groups = [
      'auth',
      'admin',
      'secrets',
      'ca',
      'egress',
      'callback',
      'limits',
      'timeouts',
      'log',
      'upstream',
    ];
    const lists = {
      allow_clients: [CANARY],
      inject_cleartext: [CANARY],
      egress: { allow_private: [CANARY] },
    };
    const fields = { listen: CANARY, require_config: CANARY, admin: { listen: CANARY, hosts: [CANARY] } };
    const variables = {
      SALLYPORT_LISTEN: CANARY,
      SALLYPORT_LIMITS_MAX_LOOKUPS: CANARY,
      SALLYPORT_LOG_LEVEL: CANARY,
    };
    for (const [document, env] of [
      [Object.fromEntries(groups.map((group) => [group, CANARY])), {}],
      [{ ...lists, ...fields, log: { level: CANARY } }, {}],
      [{}, variables],
    ]) {
      const parsed = parseConfig(document, env as NodeJS.ProcessEnv);
      if (parsed.ok) throw new Error('nothing was refused');
      expect(parsed.issues.length).toBeGreaterThan(2);
      expect(leaksIn('the issues', formatIssues('FILE', parsed.issues))).toEqual([]);
    }
  });

  it('I5 no leak: the environment of a child process contains no secret', () => {
    const env = {
      SALLYPORT_SECRET_A: CANARY,
      'SALLYPORT_SECRET_NO-NAME': CANARY,
      SALLYPORT_ADMIN_TOKEN: CANARY,
      SALLYPORT_STATE_KEY: randomBytes(32).toString('base64'),
      SALLYPORT_HANDED_SECRETS: CANARY,
      SALLYPORT_LISTEN: '127.0.0.1:0',
    };
    expect(withoutSecretVariables(env)).toEqual({ SALLYPORT_LISTEN: '127.0.0.1:0' });
  });
});

describe('I5 no leak: a secret as a value', () => {
  const secret = new Secret(CANARY);
  const rows: readonly (readonly [how: string, print: () => string])[] = [
    ['as text', () => `${secret} ${String(secret)} ${secret + ''}`],
    ['as JSON', () => JSON.stringify({ secret, list: [secret], map: Object.fromEntries([['a', secret]]) })],
    ['by inspect', () => inspect({ secret, map: new Map([['a', secret]]) }, { depth: 9, showHidden: true })],
    ['by format', () => format('%s %j %o %O', secret, secret, secret, secret)],
    ['by its keys', () => JSON.stringify([Object.entries(secret), { ...secret }])],
    ['by structuredClone', () => inspect(structuredClone(secret), { showHidden: true })],
    ['in an error', () => inspect(new Error('refused', { cause: { secret } }), { depth: 9 })],
    [
      'joined and split',
      () => inspect([Secret.join(['Bearer ', secret]), new Secret(`Basic ${CANARY}`).credentials()]),
    ],
    ['by its fingerprint', () => secret.fingerprint()],
  ];
  it.each(rows)('I5 no leak: a secret does not show when printed %s', (_, print) => {
    expect(leaksIn('the text', print())).toEqual([]);
  });

  it('I5 no leak: a secret does not show in any form of log line', () => {
    const lines: string[] = [];
    const log = createLog('trace', { write: (line) => void lines.push(line) });
    log.info(
      { secret, headers: [{ name: 'A', value: secret }], error: { cause: secret } },
      'one %s %o',
      secret,
      secret,
    );
    log.error(secret as unknown as object);
    expect(lines).toHaveLength(2);
    expect(leaksIn('the lines', lines.join(''))).toEqual([]);
  });
});

function handed(
  name: string,
  value: string,
): { variables: { name: string; value: string; from: string }[]; operators: object } {
  return { variables: [{ name, value, from: `SALLYPORT_SECRET_${name}` }], operators: {} };
}
