// The API of the box host: a token for everything, precise errors, and nothing done by a request that is rejected.
import { request as requestHttp } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type BoxHostScene, createBoxHostScene, specOf } from '../box-host-scene.ts';

async function ask(
  { directory }: BoxHostScene,
  [method, path, body]: readonly [method: string, path: string, body?: unknown],
  token?: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const bearer = token ?? (await readFile(join(directory, 'token'), 'utf8'));
  const { promise, resolve, reject } = Promise.withResolvers<{
    readonly status: number;
    readonly body: unknown;
  }>();
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' };
  const asked = requestHttp(
    { socketPath: join(directory, 'api.sock'), method, path, headers, agent: false },
    (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) }),
      );
    },
  );
  asked.on('error', reject);
  asked.end(typeof body === 'string' || body === undefined ? body : JSON.stringify(body));
  return promise;
}

const ID = specOf().id;
const BOX = {
  workspace_id: ID,
  name: 'x',
  env_vars: {},
  limits: {},
  proxy_token: 'a-token-of-enough-length',
};

describe('the API', () => {
  it('does nothing without its token', async () => {
    await using scene = await createBoxHostScene();
    for (const [method, path] of [
      ['GET', '/v1/boxes'],
      ['GET', '/v1/status'],
      ['DELETE', `/v1/boxes/${ID}`],
      ['GET', '/nothing'],
    ] as const) {
      expect(await ask(scene, [method, path], 'wrong')).toMatchObject({
        status: 401,
        body: { code: 'wrong_token' },
      });
    }
  });

  it.each([
    ['an unknown path', ['GET', '/v1/nothing'], 404, 'no_route'],
    ['an unknown method', ['PATCH', `/v1/boxes/${ID}`], 404, 'no_route'],
    ['an id that is none', ['PUT', '/v1/boxes/..%2fx', {}], 404, 'not_found'],
    ['no JSON', ['PUT', `/v1/boxes/${ID}`, '{'], 422, 'invalid'],
    [
      'a field too many',
      ['PUT', `/v1/boxes/${ID}`, { box: { ...BOX, id: ID, uid: 0 }, policy: {} }],
      422,
      'invalid',
    ],
    ['no policy', ['PUT', `/v1/boxes/${ID}`, { box: { ...BOX, id: ID } }], 422, 'invalid'],
    [
      'version 0',
      ['PUT', `/v1/boxes/${ID}/policy`, { version: 0, document: {}, secrets: {} }],
      422,
      'invalid',
    ],
    [
      'a box that does not run',
      ['PUT', `/v1/boxes/${ID}/policy`, { version: 1, document: {}, secrets: {} }],
      500,
      'failed',
    ],
  ] as const)('rejects %s', async (_, asked, status, code) => {
    await using scene = await createBoxHostScene();
    expect(await ask(scene, asked)).toMatchObject({ status, body: { code } });
    expect(await scene.runtime.list()).toEqual([]);
  });

  it('quotes no secret in an error', async () => {
    await using scene = await createBoxHostScene();
    const policy = { version: 1, document: { rules: [] }, secrets: { NAME: 5 } };
    const rejected = await ask(scene, [
      'PUT',
      `/v1/boxes/${ID}`,
      { box: { ...BOX, id: ID, proxy_token: 'short canary' }, policy },
    ]);
    expect(rejected.status).toBe(422);
    expect(JSON.stringify(rejected.body)).not.toContain('canary');
  });
});
