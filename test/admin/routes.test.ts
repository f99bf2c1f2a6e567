import { describe, expect, it } from 'vitest';
import { CA_PEM, createAdminScene, field, SANDBOX, WARNING } from './admin-scene.ts';
import type { ShownConfig } from '../../src/admin/target.ts';
import type { Secret } from '../../src/base/secret.ts';

const DOCUMENT = { rules: [{ name: 'r' }] };
const inBody = (...loc: readonly string[]): unknown => ({ ...WARNING, loc: [...loc, ...WARNING.loc] });

describe('proxy_config', () => {
  for (const path of ['/v1/proxy_config', '/v1/sandboxes/default/proxy_config'])
    for (const method of ['PUT', 'POST'])
      it(`is replaced by ${method} ${path}`, async () => {
        await using scene = await createAdminScene();
        const response = await scene.ask(method, path, { body: DOCUMENT });
        expect(response.head.status).toBe(200);
        expect(JSON.parse(response.text)).toEqual({ revision: 8, warnings: [inBody('body')] });
        expect(field(response, 'etag')).toBe('"e8"');
        expect(scene.calls).toEqual([{ name: 'applyProxyConfig', id: 'default', given: [DOCUMENT, {}] }]);
      });

  it('may be wrapped, with the etag that the writer expects, as GET shows it', async () => {
    await using scene = await createAdminScene();
    const body = { proxy_config: DOCUMENT, revision: 3, etag: '"e7"' };
    const response = await scene.ask('PUT', '/v1/proxy_config', { body });
    expect(JSON.parse(response.text)).toEqual({ revision: 8, warnings: [inBody('body', 'proxy_config')] });
    expect(scene.calls[0]?.given).toEqual([DOCUMENT, { etag: '"e7"' }]);
  });

  it('may have nothing else beside it when wrapped', async () => {
    await using scene = await createAdminScene();
    const body = { proxy_config: DOCUMENT, rules: [], etag: 7 };
    const response = await scene.ask('PUT', '/v1/proxy_config', { body });
    expect(response.head.status).toBe(422);
    expect(JSON.parse(response.text).detail.map(({ loc, type }: never) => [loc, type])).toEqual([
      [['body', 'rules'], 'extra_forbidden'],
      [['body', 'etag'], 'string_type'],
    ]);
    const beside = await scene.ask('PUT', '/v1/proxy_config', {
      body: { proxy_config: DOCUMENT, rules: [] },
    });
    expect([beside.head.status, beside.text.includes('extra_forbidden')]).toEqual([422, true]);
    expect(scene.calls).toEqual([]);
  });

  it('is not replaced over a revision alone, whose number may come again', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', '/v1/proxy_config', {
      body: { proxy_config: DOCUMENT, revision: 7 },
    });
    expect(response.head.status).toBe(422);
    expect(JSON.parse(response.text).detail).toMatchObject([
      { loc: ['body', 'revision'], type: 'value_error' },
    ]);
    expect(scene.calls).toEqual([]);
  });

  it('is shown with its revision and its ETag', async () => {
    await using scene = await createAdminScene();
    for (const path of ['/v1/proxy_config', '/v1/sandboxes/default/proxy_config']) {
      const response = await scene.ask('GET', path);
      expect([response.head.status, field(response, 'etag')]).toEqual([200, '"e7"']);
      expect(JSON.parse(response.text)).toEqual({ proxy_config: { rules: [] }, revision: 7, etag: '"e7"' });
    }
  });

  it.each([
    ['"e7"', 304],
    ['W/"e7"', 304],
    ['"x", "e7"', 304],
    ['*', 304],
    ['"x"', 200],
    ['e7', 400],
  ])('read with If-None-Match: %s gets the status %i', async (tags, status) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/v1/proxy_config', { more: [`If-None-Match: ${tags}`] });
    expect(response.head.status).toBe(status);
    if (status === 304) expect([response.text, field(response, 'etag')]).toEqual(['', '"e7"']);
  });

  it.each([
    [['"e7"'], 200, ['"e7"']],
    [['"x"', '"e7"'], 200, ['"x"', '"e7"']],
    [['*'], 200, '*'],
    [['W/"e7"'], 412, []],
    [['"x"'], 412, ['"x"']],
    [['e7'], 400, undefined],
    [['"e7'], 400, undefined],
    [['*, "e7"'], 400, undefined],
    [['*', '*'], 400, undefined],
    [[''], 400, undefined],
  ] as const)('replaced with If-Match: %j gets the status %i', async (tags, status, etags) => {
    await using scene = await createAdminScene();
    const more = tags.map((tag) => `If-Match: ${tag}`);
    const response = await scene.ask('PUT', '/v1/proxy_config', { body: DOCUMENT, more });
    expect(response.head.status).toBe(status);
    expect(scene.calls.map(({ given }) => given[1])).toEqual(etags === undefined ? [] : [{ etags }]);
    if (status !== 412) return;
    expect(JSON.parse(response.text).detail).toContain('Revision 7 is in force');
    expect(field(response, 'etag')).toBe('"e7"');
  });

  it.each([
    ['*', 7, 412],
    ['*', 0, 200],
    ['"e7"', 7, 412],
    ['W/"e7"', 7, 412],
    ['"x", "e7"', 7, 412],
    ['"x"', 7, 200],
    ['e7', 7, 400],
  ])(
    'replaced with If-None-Match: %s over revision %i gets the status %i',
    async (tags, revision, status) => {
      const proxyConfig = (): ShownConfig => ({ revision, etag: '"e7"', document: {} });
      await using scene = await createAdminScene({ target: { proxyConfig } });
      const more = [`If-None-Match: ${tags}`];
      const response = await scene.ask('PUT', '/v1/proxy_config', { body: DOCUMENT, more });
      expect(response.head.status).toBe(status);
      // What it was compared with is what it may replace.
      expect(scene.calls.map(({ given }) => given[1])).toEqual(status === 200 ? [{ etag: '"e7"' }] : []);
      if (status === 412) expect(field(response, 'etag')).toBe('"e7"');
    },
  );

  it('of a sandbox that does not exist is a 404, whatever is expected', async () => {
    await using scene = await createAdminScene();
    const path = '/v1/sandboxes/other/proxy_config';
    const response = await scene.ask('PUT', path, { body: DOCUMENT, more: ['If-None-Match: *'] });
    expect(response.head.status).toBe(404);
  });

  it('expected by header and by etag is what both say', async () => {
    await using scene = await createAdminScene();
    const body = { proxy_config: DOCUMENT, etag: '"e3"' };
    const response = await scene.ask('PUT', '/v1/proxy_config', { body, more: ['If-None-Match: "x"'] });
    expect([response.head.status, scene.calls[0]?.given[1]]).toEqual([412, { etag: '"e3"' }]);
  });

  it('replaced over another etag than its body expects is a 412', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', '/v1/proxy_config', { body: { proxy_config: {}, etag: '"e3"' } });
    expect(response.head.status).toBe(412);
  });

  it('reports every issue of a document with its location in the body', async () => {
    const issues = [{ loc: ['rules', 3, 'name'], msg: 'Field required', type: 'missing' }];
    const applyProxyConfig = async (): Promise<never> =>
      ({ ok: false, problem: { kind: 'invalid', issues } }) as never;
    await using scene = await createAdminScene({ target: { applyProxyConfig } });
    for (const [body, ...loc] of [
      [DOCUMENT, 'body'],
      [{ proxy_config: DOCUMENT }, 'body', 'proxy_config'],
    ]) {
      const response = await scene.ask('PUT', '/v1/proxy_config', { body });
      expect(response.head.status).toBe(422);
      expect(JSON.parse(response.text)).toEqual({
        detail: [{ ...issues[0], loc: [...loc, 'rules', 3, 'name'] }],
      });
    }
  });
});

describe('workspace secrets', () => {
  it.each(['PUT', 'POST'])('are merged by %s, and null deletes', async (method) => {
    await using scene = await createAdminScene();
    for (const path of ['/v1/workspace_secrets', '/v1/sandboxes/default/workspace_secrets'])
      for (const body of [
        { A: 'value-a', B: null },
        [
          { key: 'A', value: 'value-a' },
          { key: 'B', value: null },
        ],
      ]) {
        const response = await scene.ask(method, path, { body });
        expect(JSON.parse(response.text)).toEqual({
          workspace_secrets: [{ key: 'A' }, { key: 'B' }, { key: 'C' }],
          warnings: [inBody('body')],
        });
        const changes = scene.calls.at(-1)?.given[0] as ReadonlyMap<string, Secret | null>;
        expect([...changes.keys(), changes.get('B')]).toEqual(['A', 'B', null]);
        expect(changes.get('A')?.equals('value-a')).toBe(true);
      }
  });

  it('are listed by name', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/v1/sandboxes/default/workspace_secrets');
    expect(JSON.parse(response.text)).toEqual({ workspace_secrets: [{ key: 'A' }, { key: 'B' }] });
  });
});

describe('sandboxes', () => {
  it('are listed, shown, created, changed and removed', async () => {
    await using scene = await createAdminScene();
    expect(JSON.parse((await scene.ask('GET', '/v1/sandboxes')).text)).toEqual({ sandboxes: [SANDBOX] });
    expect(JSON.parse((await scene.ask('GET', '/v1/sandboxes/default')).text)).toEqual(SANDBOX);
    const made = await scene.ask('POST', '/v1/sandboxes', { body: { id: 'box-1' } });
    expect([made.head.status, field(made, 'location')]).toEqual([201, '/v1/sandboxes/box-1']);
    expect(JSON.parse(made.text)).toMatchObject({
      id: 'box-1',
      token: 'shown-once',
      warnings: [inBody('body')],
    });
    const changed = await scene.ask('PATCH', '/v1/sandboxes/default', { body: { limits: {} } });
    expect([changed.head.status, JSON.parse(changed.text)]).toEqual([200, SANDBOX]);
    const removed = await scene.ask('DELETE', '/v1/sandboxes/default');
    expect([removed.head.status, removed.text]).toEqual([204, '']);
    expect(scene.calls.map(({ name, given }) => [name, ...given])).toEqual([
      ['createSandbox', { id: 'box-1' }],
      ['changeSandbox', { limits: {} }],
      ['removeSandbox'],
    ]);
  });

  it.each([
    ['GET', '/v1/sandboxes/other'],
    ['GET', '/v1/sandboxes/other/proxy_config'],
    ['GET', '/v1/sandboxes/other/workspace_secrets'],
    ['PUT', '/v1/sandboxes/other/proxy_config'],
    ['PUT', '/v1/sandboxes/other/workspace_secrets'],
    ['PATCH', '/v1/sandboxes/other'],
    ['DELETE', '/v1/sandboxes/other'],
    ['GET', '/v1/sandboxes/-x'],
    ['GET', '/v1/sandboxes/x-'],
    ['GET', '/v1/sandboxes/Default'],
    ['GET', '/v1/sandboxes/defa%75lt'],
    ['GET', `/v1/sandboxes/${'x'.repeat(64)}`],
    ['GET', '/v1/sandboxes/./default'],
    ['GET', '/v1/sandboxes/x/../default'],
    ['GET', '//v1/proxy_config'],
    ['GET', '/v1/proxy_config/'],
    ['GET', '/V1/proxy_config'],
    ['GET', '/v1\\proxy_config'],
    ['PUT', '/v1/nothing'],
  ])('or paths that do not exist are a 404: %s %s', async (method, path) => {
    await using scene = await createAdminScene();
    const body = method === 'PUT' || method === 'PATCH' ? {} : undefined;
    const response = await scene.ask(method, path, { body });
    expect(response.head.status).toBe(404);
    expect(typeof JSON.parse(response.text).detail).toBe('string');
  });
});

describe('a precondition where there is no ETag', () => {
  it.each([
    ['PATCH', '/v1/sandboxes/default'],
    ['DELETE', '/v1/sandboxes/default'],
    ['POST', '/v1/sandboxes'],
    ['PUT', '/v1/workspace_secrets'],
    ['POST', '/v1/sandboxes/default/workspace_secrets'],
  ])('is rejected and not ignored: %s %s', async (method, path) => {
    await using scene = await createAdminScene();
    const body = method === 'DELETE' ? undefined : {};
    for (const condition of ['If-Match: "e7"', 'If-None-Match: *']) {
      const response = await scene.ask(method, path, { body, more: [condition] });
      expect([response.head.status, JSON.parse(response.text).detail]).toEqual([
        400,
        expect.stringContaining('leave out If-Match'),
      ]);
    }
    expect(scene.calls).toEqual([]);
    expect(scene.records.map(({ reason }) => reason)).toEqual(['no_etag', 'no_etag']);
  });
});

describe('a problem of the target', () => {
  it.each([
    ['not_found', 404],
    ['exists', 409],
    ['stale', 412],
    ['protected', 409],
    ['full', 507],
    ['storage_failed', 500],
    ['records_blocked', 503],
    ['busy', 503],
  ] as const)('%s gets the status %i, its message and its code', async (kind, status) => {
    const refuse = async (): Promise<never> =>
      ({ ok: false, problem: { kind, message: 'Do this.' } }) as never;
    await using scene = await createAdminScene({ target: { createSandbox: refuse, removeSandbox: refuse } });
    for (const response of [
      await scene.ask('POST', '/v1/sandboxes', { body: {} }),
      await scene.ask('DELETE', '/v1/sandboxes/default'),
    ]) {
      expect([response.head.status, JSON.parse(response.text)]).toEqual([
        status,
        { detail: 'Do this.', code: kind },
      ]);
      expect(field(response, 'retry-after')).toBe(status === 503 ? '1' : undefined);
    }
    expect(scene.records.map(({ reason }) => reason)).toEqual([kind, kind]);
  });
});

describe('what needs no token', () => {
  const anyone = ['Host: 127.0.0.1'];

  it('is health, readiness, the CA certificate and the list of routes', async () => {
    let isReady = false;
    await using scene = await createAdminScene({ target: { isReady: () => isReady } });
    expect((await scene.ask('GET', '/healthz', { fields: anyone })).head.status).toBe(200);
    expect((await scene.ask('GET', '/readyz', { fields: anyone })).head.status).toBe(503);
    isReady = true;
    expect((await scene.ask('GET', '/readyz', { fields: anyone })).head.status).toBe(200);
    const ca = await scene.ask('GET', '/v1/ca.pem', { fields: anyone });
    expect([field(ca, 'content-type'), ca.text]).toEqual(['application/x-pem-file', CA_PEM]);
    const head = await scene.ask('HEAD', '/v1/ca.pem', { fields: anyone });
    expect([head.head.status, field(head, 'content-length')]).toEqual([200, String(CA_PEM.length)]);
    expect(scene.records).toEqual([]);
  });

  it('lists every route with what it does and whether it needs a token', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/', { fields: anyone });
    const { routes } = JSON.parse(response.text);
    expect(routes.length).toBe(21);
    for (const { method, path, what, needs_token } of routes) {
      expect(what).toMatch(/^\S/);
      const asked = await scene.ask(method, path.replace('{id}', 'default'), { fields: anyone });
      expect([method, path, asked.head.status === 401]).toEqual([method, path, needs_token]);
    }
    expect(scene.calls).toEqual([]);
  });
});
