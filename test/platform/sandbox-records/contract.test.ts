import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { sandboxRecordRoutes } from '../../../src/platform/sandbox-records/record-routes.ts';
import {
  RANGE,
  recordBatch,
  storableTime,
  storedRecord,
} from '../../../src/platform/sandbox-records/contract.ts';
import { recordOf } from './record-scene.ts';

describe('a time of a record', () => {
  it.each(['1970-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '2026-01-01T00:00:00+23:59'])(
    'can be %s',
    (time) => {
      expect(storableTime.safeParse(time).success).toBe(true);
    },
  );

  it.each(['1969-12-31T23:59:59Z', '9999-12-31T23:59:59-00:01', '2026-01-01T00:00:00', '2026-01-01'])(
    'cannot be %s',
    (time) => expect(storableTime.safeParse(time).success).toBe(false),
  );
});

describe('the description of the API', () => {
  it('has the range of every time that a client sends', () => {
    const routes = sandboxRecordRoutes.flatMap(({ query, body }) =>
      [query, body].filter((one) => one !== undefined),
    );
    const described = JSON.stringify(routes.map((schema) => z.toJSONSchema(schema)));
    const named = [
      ...described.matchAll(/"(start_time|end_time|expires_at|time)":\{.*?"description":"([^"]*)"/g),
    ];
    expect(new Set(named.map(([, name]) => name)).size).toBe(4);
    for (const [, name, description] of named)
      expect([name, description]).toEqual([name, expect.stringContaining(RANGE)]);
  });
});

describe('a record', () => {
  const parses = (fields: Readonly<Record<string, unknown>>): boolean =>
    recordBatch.safeParse({ source: randomUUID(), records: [recordOf({ number: 1, ...fields })] }).success;

  it('is accepted with bounded fields', () => {
    expect(parses({ path: '/v1/x…', injected: ['Authorization'], rule: 'Größe', cause: '' })).toBe(true);
  });

  it.each([
    [{ path: '/v1?token=x' }],
    [{ path: '/ä' }],
    [{ injected: ['Authorization: x'] }],
    [{ injected: Array.from({ length: 65 }, () => 'A') }],
    [{ rule: 'a\nb' }],
    [{ method: '' }],
    [{ unknown: 1 }],
  ])('is rejected with %j', (fields) => expect(parses(fields)).toBe(false));

  it('has its source in a response', () => {
    const record = recordOf({ number: 1 });
    expect(storedRecord.safeParse(record).success).toBe(false);
    expect(storedRecord.safeParse({ ...record, source: randomUUID() }).success).toBe(true);
  });
});
