import { describe, expect, it } from 'vitest';
import { CA_PEM, createAdminScene, field } from './admin-scene.ts';

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
    expect(routes.length).toBe(23);
    for (const { method, path, what, needs_token } of routes) {
      expect(what).toMatch(/^\S/);
      const asked = await scene.ask(method, path.replace('{id}', 'default'), { fields: anyone });
      expect([method, path, asked.head.status === 401]).toEqual([method, path, needs_token]);
    }
    expect(scene.calls).toEqual([]);
  });
});
