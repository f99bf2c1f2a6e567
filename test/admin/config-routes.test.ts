import { describe, expect, it } from 'vitest';
import type { ShownConfig } from '../../src/admin/target.ts';
import { createAdminScene, field, WARNING } from './admin-scene.ts';

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
