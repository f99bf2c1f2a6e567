import { describe, expect, it } from 'vitest';
import type { AdminResponse } from '../../src/admin/admin-errors.ts';
import { WriteGate } from '../../src/admin/write-gate.ts';
import { createAdminScene, createGatedTarget, field, readResponse, request } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
const LIMITS = { writesInAll: 24, writesAtOnce: 8, writesPerSecond: 100, bodyBytes: 1_000, stallMs: 30_000 };

describe('writes', () => {
  const change = request('PATCH', '/v1/sandboxes/default', { body: {} });

  it('run one at a time, eight of a sandbox at most wait, and reads pass them', async () => {
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
    expect([ninth.head.status, field(ninth, 'retry-after')]).toEqual([429, '1']);
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
    const gate = new WriteGate({ ...LIMITS, stallMs: 20 }, () => 0);
    const { promise, resolve } = Promise.withResolvers<AdminResponse>();
    const hung = gate.run(() => promise);
    expect(gate.enter('default', 1)).toBeUndefined();
    expect(await gate.run(() => ({ status: 200 }))).toMatchObject({ status: 503, reason: 'busy' });
    expect(gate.enter('default', 1)).toMatchObject({ status: 503, reason: 'busy' });
    resolve({ status: 204 });
    expect(await hung).toEqual({ status: 204 });
    expect(await gate.run(() => ({ status: 200 }))).toEqual({ status: 200 });
    expect(gate.enter('default', 1)).toBeUndefined();
  });

  it('of callers without the token do not count', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 1, writesAtOnce: 1 } });
    for (let turn = 0; turn < 3; turn += 1)
      await scene.ask('PUT', PATH, { fields: ['Host: localhost'], body: {} });
    expect((await scene.ask('PUT', PATH, { body: {} })).head.status).toBe(200);
  });
});

describe('the share of a sandbox', () => {
  const late = { status: 429, reason: 'too_many_writes' };

  it('is not used up by the writes of another, neither by number nor by bytes nor at once', () => {
    const gate = new WriteGate({ ...LIMITS, writesPerSecond: 10 }, () => 0);
    for (let i = 0; i < 8; i += 1) expect(gate.enter('a', 1)).toBeUndefined();
    expect(gate.enter('a', 1)).toMatchObject(late);
    for (let i = 0; i < 8; i += 1) gate.leave('a');
    for (let i = 0; i < 2; i += 1) expect(gate.enter('a', 1)).toBeUndefined();
    for (let i = 0; i < 2; i += 1) gate.leave('a');
    expect(gate.enter('a', 1)).toMatchObject(late);
    for (let i = 0; i < 2; i += 1) expect(gate.admitDocument('a', 1_000)).toBeUndefined();
    expect(gate.admitDocument('a', 1)).toMatchObject(late);
    for (let i = 0; i < 8; i += 1) expect(gate.enter('b', 1)).toBeUndefined();
    expect(gate.admitDocument('b', 1_000)).toBeUndefined();
  });

  it('is not used up by bytes for a write without a document, such as a removal', () => {
    const gate = new WriteGate(LIMITS, () => 0);
    for (let i = 0; i < 2; i += 1) expect(gate.admitDocument('a', 1_000)).toBeUndefined();
    expect(gate.enter('a', 0)).toMatchObject(late);
    expect(gate.enter('a', undefined)).toBeUndefined();
  });

  it('admits the largest document every four seconds, however often one is sent', () => {
    let now = 0;
    const gate = new WriteGate(LIMITS, () => now);
    const admitted: number[] = [];
    for (; now < 20_000; now += 100) {
      const rejection = gate.enter('a', 1_000);
      if (rejection !== undefined) {
        expect(rejection).toMatchObject(late);
        continue;
      }
      if (gate.admitDocument('a', 1_000) === undefined) admitted.push(now);
      gate.leave('a');
    }
    const gaps = admitted.slice(2).map((at, i) => at - (admitted[i + 1] ?? 0));
    expect(admitted.slice(0, 2)).toEqual([0, 100]);
    expect(Math.max(...gaps)).toBeLessThan(5_000);
    expect(admitted.length).toBeLessThan(8);
  });

  it('rejects before the body is asked for, once too many bytes have come', async () => {
    await using scene = await createAdminScene({ limits: { bodyBytes: 100 } });
    const large = JSON.stringify({ limits: {}, pad: 'x'.repeat(60) });
    const statuses: number[] = [];
    for (let turn = 0; turn < 2; turn += 1)
      statuses.push((await scene.ask('PATCH', '/v1/sandboxes/default', { body: large })).head.status);
    expect(statuses).toEqual([200, 200]);
    await using client = await scene.connect();
    await client.send(
      request('PATCH', '/v1/sandboxes/default', {
        more: ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'],
      }),
    );
    const rejected = await client.readResponse();
    expect(rejected.head.status).toBe(429);
    expect(Number(field(rejected, 'retry-after'))).toBeGreaterThan(0);
    expect((await scene.ask('DELETE', '/v1/sandboxes/other')).head.status).toBe(404);
  });

  it('holds all sandboxes together to a number at once', () => {
    const gate = new WriteGate({ ...LIMITS, writesInAll: 3 }, () => 0);
    for (const sandbox of ['a', 'b', 'c']) expect(gate.enter(sandbox, 1)).toBeUndefined();
    expect(gate.enter('d', 1)).toMatchObject({ status: 503, reason: 'busy' });
    gate.leave('a');
    expect(gate.enter('d', 1)).toBeUndefined();
  });
});
