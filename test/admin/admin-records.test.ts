import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { RateLimit } from '../../src/base/rate-limit.ts';
import { type AdminRecord, UnauthenticatedRecords, toAdminRecord } from '../../src/admin/admin-records.ts';
import { createAdminScene, field, readResponse, request, TOKEN } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
const LOCAL = 'Host: localhost';
const ANYONE = { fields: [LOCAL] };

describe('a write', () => {
  it('leaves one record, and its response has the id of the record', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', '/v1/sandboxes/default/proxy_config', { body: { rules: [] } });
    expect(scene.records).toEqual([
      {
        action: 'proxy_config.apply',
        sandbox: 'default',
        status: 200,
        outcome: 'done',
        revision: 8,
        client: '127.0.0.1',
        request: field(response, 'x-request-id'),
        duration_ms: expect.any(Number),
      },
    ]);
    expect(scene.records[0]?.duration_ms).toBeGreaterThan(0);
  });

  it('that creates a sandbox leaves a record with its id', async () => {
    await using scene = await createAdminScene();
    await scene.ask('POST', '/v1/sandboxes', { body: {} });
    expect(scene.records).toMatchObject([{ action: 'sandbox.create', sandbox: 'box-1', status: 201 }]);
  });

  it.each([
    ['PUT', '/v1/workspace_secrets', 'default'],
    ['DELETE', '/v1/sandboxes/box-2', 'box-2'],
    ['DELETE', '/v1/sandboxes/Box', undefined],
    ['POST', '/v1/sandboxes', undefined],
    ['PUT', '/v1/other', undefined],
  ])('that is rejected leaves a record with its sandbox: %s %s', async (method, path, sandbox) => {
    await using scene = await createAdminScene();
    await scene.ask(method, path, { ...ANYONE, body: {} });
    expect(scene.records.map((record) => record.sandbox)).toEqual([sandbox]);
  });

  it.each([
    ['without a token', 'PUT', PATH, { ...ANYONE, body: {} }, 401, 'no_token'],
    ['with a wrong token', 'PUT', PATH, { fields: [LOCAL, 'X-Api-Key: x'], body: {} }, 401, 'wrong_token'],
    ['under a foreign name', 'PUT', PATH, { fields: ['Host: a.test'], body: {} }, 421, 'foreign_host'],
    ['without a Host', 'PUT', PATH, { fields: [], body: {} }, 400, 'bad_host'],
    ['through a proxy', 'PUT', PATH, { more: ['Via: 1.1 x'], body: {} }, 403, 'proxied'],
    ['of another type', 'PUT', PATH, { more: ['Content-Type: text/plain'], body: '{}' }, 415, 'content_type'],
    ['with a query', 'PUT', `${PATH}?a=1`, { body: {} }, 422, 'invalid'],
    ['that is no JSON', 'PUT', PATH, { body: '{' }, 422, 'invalid'],
    ['that is too large', 'PUT', PATH, { body: 'x'.repeat(1024 * 1024 + 1) }, 413, 'too_large'],
    ['over another revision', 'PUT', PATH, { body: {}, more: ['If-Match: "x"'] }, 412, 'stale'],
    ['of a sandbox that is not there', 'PATCH', '/v1/sandboxes/other', { body: {} }, 404, 'not_found'],
    ['to a path that is not there', 'PUT', '/v1/other', { body: {} }, 404, 'no_route'],
    ['by a method that is not known', 'DELETE', PATH, {}, 405, 'method'],
  ] as const)(
    'that is rejected leaves one record too: %s',
    async (_, method, path, options, status, reason) => {
      await using scene = await createAdminScene();
      const response = await scene.ask(method, path, options);
      expect(response.head.status).toBe(status);
      // The reason in the record is the code in the body; issues have types of their own.
      if (status !== 422) expect(JSON.parse(response.text).code).toBe(reason);
      expect(scene.records).toMatchObject([
        { status, reason, outcome: 'refused', request: field(response, 'x-request-id') },
      ]);
    },
  );

  it.each(['reset', 'end'] as const)(
    'leaves one record when its client leaves within the body by %s',
    async (leave) => {
      await using scene = await createAdminScene();
      const client = await scene.connect();
      await client.send(
        request('PUT', PATH, { more: ['Content-Type: application/json', 'Content-Length: 10'] }),
      );
      await client.send('{"a"');
      client[leave]();
      expect(await scene.record(0)).toMatchObject({
        ...{ status: 499, outcome: 'failed', reason: 'client_gone', client: '127.0.0.1' },
      });
      await scene.server.close(0);
      expect([scene.records.length, scene.calls]).toEqual([1, []]);
    },
  );

  it('leaves one record and no longer counts as running when its handler throws', async () => {
    const canary = 'canary-in-an-error';
    const fail = async (): Promise<never> => {
      throw new TypeError(canary);
    };
    const target = {
      applyProxyConfig: fail,
      changeSecrets() {
        throw new RangeError(canary);
      },
    };
    await using scene = await createAdminScene({ target, limits: { writesAtOnce: 1 } });
    for (const path of [PATH, '/v1/workspace_secrets']) {
      const response = await scene.ask('PUT', path, { body: {} });
      expect(response.head.status).toBe(500);
      expect(JSON.parse(response.text).detail).toMatch(/log/);
      expect(scene.logLines.at(-1)).toContain(field(response, 'x-request-id'));
      expect(response.head.text + response.text + scene.logLines.join()).not.toContain(canary);
    }
    expect(scene.records).toMatchObject([
      { status: 500, outcome: 'failed', reason: 'internal_error' },
      { status: 500, outcome: 'failed', reason: 'internal_error' },
    ]);
    expect(scene.logLines.map((line) => JSON.parse(line).error)).toEqual(['TypeError', 'RangeError']);
  });

  it.each(['/v1/proxy_config', '/v1/%2e'])(
    'whose record fails ends its connection alone: PUT %s',
    async (path) => {
      const record = (): never => {
        throw new RangeError('canary');
      };
      await using scene = await createAdminScene({ record });
      await using client = await scene.connect();
      await client.send(request('PUT', path, { body: {} }));
      expect(await client.readToEnd().catch(() => '')).toBe('');
      expect(scene.logLines.map((line) => JSON.parse(line).error)).toEqual(['RangeError']);
      expect((await scene.ask('GET', PATH)).head.status).toBe(200);
    },
  );

  it('is rejected while records cannot be written, reads are not', async () => {
    await using scene = await createAdminScene();
    scene.blockRecords(true);
    const response = await scene.ask('PUT', PATH, { body: {} });
    expect([response.head.status, field(response, 'retry-after')]).toEqual([503, '1']);
    expect((await scene.ask('GET', PATH)).head.status).toBe(200);
    expect([scene.calls, scene.records[0]?.reason]).toEqual([[], 'records_blocked']);
    scene.blockRecords(false);
    expect((await scene.ask('PUT', PATH, { body: {} })).head.status).toBe(200);
  });

  it('is rejected when records can no longer be written after its body arrived', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'];
    await client.send(request('PUT', PATH, { more }));
    expect((await client.readHead()).status).toBe(100);
    scene.blockRecords(true);
    await client.send('{}');
    expect((await client.readResponse()).head.status).toBe(503);
    expect([scene.calls, scene.records[0]?.reason]).toEqual([[], 'records_blocked']);
  });
});

describe('rejected requests of callers without the token', () => {
  const WRONG = { fields: [LOCAL, 'X-Api-Key: x'], body: {} };

  it('over so many a second are counted, and reported in one record', async () => {
    await using scene = await createAdminScene({ limits: { unauthenticatedRecordsPerSecond: 3 } });
    for (let turn = 0; turn < 4; turn += 1) await scene.ask('PUT', PATH, { ...ANYONE, body: {} });
    const response = await scene.ask('PUT', '/v1/workspace_secrets', WRONG);
    expect(scene.records).toHaveLength(3);
    // A caller with the token is recorded whatever others do.
    for (let turn = 0; turn < 4; turn += 1) await scene.ask('PUT', '/v1/other', { body: {} });
    expect(scene.records.map(({ count }) => count)).toEqual(Array(7).fill(undefined));
    expect(await scene.record(7)).toEqual({
      action: 'workspace_secrets.change',
      sandbox: 'default',
      status: 401,
      outcome: 'refused',
      reason: 'wrong_token',
      client: '127.0.0.1',
      request: field(response, 'x-request-id'),
      duration_ms: expect.any(Number),
      count: 2,
    });
  });

  it('while records cannot be written are counted, and reported as soon as they can be', async () => {
    await using scene = await createAdminScene();
    scene.blockRecords(true);
    for (let turn = 0; turn < 3; turn += 1) await scene.ask('GET', PATH, WRONG);
    await scene.ask('PUT', PATH, { body: {} });
    expect(scene.records).toMatchObject([{ reason: 'records_blocked' }]);
    scene.blockRecords(false);
    expect(await scene.record(1)).toMatchObject({ reason: 'wrong_token', count: 3, suppressed: 3 });
    await scene.server.close(0);
    expect(scene.records).toHaveLength(2);
  });

  it('that are counted wait as long as records cannot be written', async () => {
    const blocked = [true, true, false];
    const reported = Promise.withResolvers<AdminRecord>();
    const unauthenticated = new UnauthenticatedRecords({
      rate: new RateLimit(1, 1000, () => 0),
      log: createLog('silent', { write() {} }),
      record: reported.resolve,
      isRecordBlocked: () => blocked.shift() ?? false,
    });
    const start = { action: 'a', sandbox: 'box', client: '127.0.0.1', requestId: 'r', startedMs: 0 };
    const entry = toAdminRecord(start, { status: 401, reason: 'wrong_token' }, 1);
    unauthenticated.add(entry);
    expect(await reported.promise).toEqual({ ...entry, count: 1, suppressed: 1 });
    expect(blocked).toEqual([]);
  });

  it('that are counted are reported when the server closes', async () => {
    await using scene = await createAdminScene({ limits: { unauthenticatedRecordsPerSecond: 0 } });
    await scene.ask('PUT', PATH, WRONG);
    expect(scene.records).toEqual([]);
    await scene.server.close(0);
    expect(scene.records).toMatchObject([{ reason: 'wrong_token', count: 1 }]);
  });

  it('that are counted and cannot be recorded do not end the process', async () => {
    const record = (): never => {
      throw new RangeError('canary');
    };
    await using scene = await createAdminScene({ record, limits: { unauthenticatedRecordsPerSecond: 0 } });
    await scene.ask('PUT', PATH, WRONG);
    await expect.poll(() => scene.logLines, { timeout: 5000 }).toHaveLength(1);
    expect(JSON.parse(scene.logLines[0] ?? '')).toMatchObject({ error: 'RangeError' });
  });
});

describe('a read', () => {
  it('leaves no record unless its token is wrong', async () => {
    await using scene = await createAdminScene();
    await scene.ask('GET', PATH);
    await scene.ask('GET', PATH, ANYONE);
    await scene.ask('GET', '/nothing');
    await scene.ask('HEAD', '/healthz', ANYONE);
    expect(scene.records).toEqual([]);
    await scene.ask('GET', PATH, { fields: [LOCAL, 'X-Api-Key: x'] });
    expect(scene.records).toMatchObject([
      { action: 'proxy_config.show', status: 401, reason: 'wrong_token' },
    ]);
  });

  it('that fails is a 500 and a log line', async () => {
    const proxyConfig = (): never => {
      throw new Error('canary');
    };
    await using scene = await createAdminScene({ target: { proxyConfig } });
    expect((await scene.ask('GET', PATH)).head.status).toBe(500);
    expect(scene.logLines.join()).toContain('admin request failed');
  });
});

describe('a secret that was sent', () => {
  const PLANTED = 'canary-secret-7c4a8d09ca3762af61e59520943dc264';
  const spellings = [PLANTED, TOKEN, encodeURIComponent(PLANTED), Buffer.from(PLANTED).toString('base64')];

  it.each([
    ['PUT', '/v1/workspace_secrets', { body: { GOOD: PLANTED } }],
    ['PUT', '/v1/workspace_secrets', { body: { [PLANTED]: 'GOOD' } }],
    ['PUT', '/v1/workspace_secrets', { body: { GOOD: { value: PLANTED } } }],
    ['PUT', '/v1/workspace_secrets', { body: [{ key: PLANTED, value: PLANTED }] }],
    ['PUT', '/v1/workspace_secrets', { body: [{ key: 'A', value: 'x', [PLANTED]: PLANTED }] }],
    ['PUT', '/v1/workspace_secrets', { body: `{"A": "${PLANTED}", "A": "${PLANTED}"}` }],
    ['PUT', '/v1/workspace_secrets', { body: `{"A": ${PLANTED}}` }],
    ['PUT', '/v1/workspace_secrets', { body: `"${PLANTED}"` }],
    ['PUT', PATH, { body: { proxy_config: {}, etag: PLANTED } }],
    ['PUT', PATH, { body: {}, more: [`If-Match: ${PLANTED}`] }],
    ['PUT', PATH, { body: PLANTED, more: [`Content-Type: ${PLANTED}`] }],
    ['PUT', `${PATH}?key=${PLANTED}`, { body: {} }],
    ['GET', PATH, { fields: [LOCAL, `X-Api-Key: ${PLANTED}`] }],
    ['PUT', `/v1/${PLANTED}`, { body: {} }],
    ['GET', PATH, { fields: [`Host: ${PLANTED}`] }],
    ['GET', PATH, { more: [`X-Forwarded-For: ${PLANTED}`] }],
    ['PUT', PATH, { body: {}, more: [`Expect: ${PLANTED}`] }],
  ])('is in no response, record or log line: %s %s %j', async (method, path, options) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    await client.send(request(method, path, options));
    await readResponse(client);
    const reported = [client.transcript, JSON.stringify(scene.records), ...scene.logLines].join('\n');
    expect(reported).toContain('HTTP/1.1');
    for (const spelling of spellings) expect(reported).not.toContain(spelling);
  });

  it('would be seen if it did', async () => {
    const proxyConfig = (): never => ({ revision: 1, etag: '"e"', document: { leak: PLANTED } }) as never;
    await using scene = await createAdminScene({ target: { proxyConfig } });
    expect((await scene.ask('GET', PATH)).text).toContain(PLANTED);
  });
});
