import { describe, expect, it } from 'vitest';
import type { InvalidInput } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { readParts } from '../../../src/platform/api/request-parts.ts';

const MAX = 4 * 1024 * 1024;
const route = {
  params: z.strictObject({ id: z.uuid() }),
  query: z.strictObject({ limit: z.int().default(10) }),
  body: z.strictObject({ name: z.string() }),
};

function read(
  text: string,
  query = '',
  params = { id: '00000000-0000-4000-8000-000000000000' },
): Promise<unknown> {
  const request = new Request(`http://platform.test/${query}`, { method: 'POST', body: text });
  request.headers.set('content-type', 'application/json');
  return readParts(route, request, params, MAX);
}

describe('the parts of a request', () => {
  it('are read by the schemas of the route', async () => {
    expect(await read('{"name":"a"}', '?limit=5')).toEqual({
      params: { id: '00000000-0000-4000-8000-000000000000' },
      query: { limit: 5 },
      body: { name: 'a' },
    });
  });

  it('are refused with the issues of all of them', async () => {
    const refused = await read('{"name":1}', '?limit=x&more=1', { id: '\0' }).catch(
      (error: unknown) => error,
    );
    expect((refused as InvalidInput).issues.map(({ loc }) => loc)).toEqual([
      ['query', 'more'],
      ['path', 'id'],
      ['query', 'limit'],
      ['body', 'name'],
    ]);
  });

  it('are refused as such, however many issues fit into a body', async () => {
    const names = Array.from({ length: 200_000 }, (_, at) => `"${at}":1`);
    const refused = await read(`{${names.join(',')}}`).catch((error: unknown) => error);
    expect((refused as InvalidInput).issues).toHaveLength(200_001);
  });
});
