import { describe, expect, it } from 'vitest';
import type { AdminResponse } from '../../src/admin/admin-errors.ts';
import { WriteGate } from '../../src/admin/write-gate.ts';
import { RateLimit } from '../../src/base/rate-limit.ts';
import { createAdminScene, createGatedTarget, field, readResponse, request } from './admin-scene.ts';

const PATH = '/v1/proxy_config';

describe('writes', () => {
  const change = request('PATCH', '/v1/sandboxes/default', { body: {} });

  it('run one at a time, eight at most wait, and reads pass them', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    const clients = await Promise.all(Array.from({ length: 8 }, () => scene.connect()));
    // Each is inside once it is asked for its body.
    for (const client of clients) {
      await client.send(
        request('PATCH', '/v1/sandboxes/default', {
          more: ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'],
        }),
      );
      expect((await client.readHead()).status).toBe(100);
    }
    const ninth = await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} });
    expect([ninth.head.status, field(ninth, 'retry-after')]).toEqual([503, '1']);
    expect((await scene.ask('GET', PATH)).head.status).toBe(200);
    for (const client of clients) await client.send('{}');
    await gated.begun;
    // Handled after everything that arrived before them: by then every document was read.
    for (let turn = 0; turn < 3; turn += 1) await scene.ask('GET', PATH);
    gated.open();
    for (const client of clients) {
      expect((await readResponse(client)).head.status).toBe(200);
      await client[Symbol.asyncDispose]();
    }
    expect(gated.seen).toEqual({ running: 0, most: 1, started: 8 });
    expect((await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} })).head.status).toBe(200);
  });

  it('over so many a second are a 429', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 3 } });
    await using client = await scene.connect();
    const reported: unknown[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      await client.send(change);
      const response = await readResponse(client);
      reported.push(response.head.status, field(response, 'retry-after'));
    }
    expect(reported).toEqual([200, undefined, 200, undefined, 200, undefined, 429, '1']);
  });

  it('behind one that does not end are rejected and never done, until it ends', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target, limits: { stallMs: 50 } });
    await using client = await scene.connect();
    await client.send(change);
    await gated.begun;
    for (let turn = 0; turn < 2; turn += 1) {
      const behind = await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} });
      expect([behind.head.status, field(behind, 'retry-after')]).toEqual([503, '10']);
      expect(JSON.parse(behind.text).detail).toContain('does not end');
    }
    expect(scene.records.map(({ reason }) => reason)).toEqual(['busy', 'busy']);
    gated.open();
    expect((await client.readResponse()).head.status).toBe(200);
    expect((await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} })).head.status).toBe(200);
    expect(gated.seen).toEqual({ running: 0, most: 1, started: 2 });
  });

  it('behind one that is known not to end are rejected at once', async () => {
    const gate = new WriteGate(8, new RateLimit(100, 1000, () => 0), 20);
    const { promise, resolve } = Promise.withResolvers<AdminResponse>();
    const hung = gate.run(() => promise);
    expect(gate.enter()).toBeUndefined();
    expect(await gate.run(() => ({ status: 200 }))).toMatchObject({ status: 503, reason: 'busy' });
    expect(gate.enter()).toMatchObject({ status: 503, reason: 'busy' });
    resolve({ status: 204 });
    expect(await hung).toEqual({ status: 204 });
    expect(await gate.run(() => ({ status: 200 }))).toEqual({ status: 200 });
    expect(gate.enter()).toBeUndefined();
  });

  it('of callers without the token do not count', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 1, writesAtOnce: 1 } });
    for (let turn = 0; turn < 3; turn += 1)
      await scene.ask('PUT', PATH, { fields: ['Host: localhost'], body: {} });
    expect((await scene.ask('PUT', PATH, { body: {} })).head.status).toBe(200);
  });
});
