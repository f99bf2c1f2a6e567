// Fuzzes every route with input that its schemas call valid, at the limit or invalid, and with input that no schema covers.
// Checks: no internal error, only documented statuses and bodies, no change by a rejected request, one event per request.
// PROPERTY_SEED replays a run, EVERY_ROUTE_RUNS makes it longer.
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordBatch, storeRecords } from '../../../src/platform/sandbox-records/contract.ts';
import { propertySeed } from '../../properties/property-seed.ts';
import { runs } from '../../support/run-size.ts';
import type { Operation } from './document.ts';
import { defectiveRoutes } from './defective-routes.ts';
import { toPath } from './fixtures.ts';
import { bodyProbe } from './probes.ts';
import { createProber, MAX_BODY_BYTES, type Prober } from './prober.ts';
import { type EveryRoute, openEveryRoute } from './scene.ts';
import { validValues } from './schema-values.ts';
import { asWritten, canary, variantsOf } from './schema-variants.ts';
import { everyNth } from '../../support/run-size.ts';

const seed = propertySeed();
const examples = Number(process.env['EVERY_ROUTE_RUNS'] ?? runs(10, 3));

let scene: EveryRoute;
let prober: Prober;
beforeAll(async () => {
  scene = await openEveryRoute({ maxBodyBytes: MAX_BODY_BYTES });
  prober = await createProber(scene);
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('every route', () => {
  it('accepts valid requests and rejects invalid ones, with one error at a time', {
    tags: ['long'],
    timeout: 600_000,
  }, async () => {
    const found: string[] = [];
    let sent = 0;
    for (const operation of scene.operations) {
      const swept = await prober.sweep(operation, seed);
      found.push(...swept.found);
      sent += swept.sent;
    }
    expect([seed, found.slice(0, 40), found.length]).toEqual([seed, [], 0]);
    expect(sent).toBeGreaterThan(1000);
  });

  it('does so for random values', async () => {
    for (const operation of scene.operations) {
      const { body } = operation;
      if (body === undefined) continue;
      const changed = fc.tuple(validValues(body.schema), fc.nat(), fc.boolean());
      await fc.assert(
        fc.asyncProperty(changed, async ([value, which, isWhole]) => {
          const example = await prober.createExample(operation, seed);
          const variants = variantsOf(body.schema, value);
          const variant = isWhole ? { what: 'unchanged', at: '', value } : variants[which % variants.length];
          const reported = await prober.probe(
            bodyProbe(example, variant?.value, `${variant?.at} ${variant?.what}`),
            example.values,
          );
          expect(reported.found).toEqual([]);
        }),
        { seed, numRuns: examples },
      );
    }
  }, 600_000);

  it('rejects a modified cursor without an internal error', async () => {
    const { api, operations } = scene;
    const profile_id = await writePages();
    const found: string[] = [];
    for (const operation of operations.filter(hasCursor)) {
      const example = await prober.createExample(operation, seed);
      const as = prober.authorize(operation);
      const path = toPath(operation.path, {
        ...example.values,
        profile_id,
        sandbox: 'here',
        name: 'fuzzed-1',
      });
      const page = await api.ask('GET', `${path}?limit=1`, as);
      const cursor: unknown = page.body.cursor ?? page.body.next_cursor;
      expect([operation.title, typeof cursor]).toEqual([operation.title, 'string']);
      for (const changed of changedCursors(String(cursor))) {
        const { status, text } = await api.ask('GET', `${path}?limit=1&cursor=${changed}`, as);
        if (status !== 422 && status !== 200)
          found.push(`${operation.title}: ${Buffer.from(changed, 'base64url')}: ${status} ${text}`);
      }
    }
    expect(found).toEqual([]);
  });
});

describe('the fuzz tests find a defective route', () => {
  let defective: EveryRoute;
  let defectiveProber: Prober;
  beforeAll(async () => {
    const routes = defectiveRoutes.map(({ route }) => route);
    defective = await openEveryRoute({ maxBodyBytes: MAX_BODY_BYTES, routes });
    defectiveProber = await createProber(defective);
  });
  afterAll(() => defective[Symbol.asyncDispose]());

  everyNth(4, defectiveRoutes, (some, options) =>
    it.each(some)('$route.summary', options, async ({ route, complaint }) => {
      const operation = defective.operations.find((one) => one.route === route);
      expect(operation).toBeDefined();
      const swept = operation && (await defectiveProber.sweep(operation, seed));
      expect(swept?.found.join('\n')).toContain(complaint);
    }),
  );
});

/** Creates entries for lists with cursors; returns a proxy profile that sandboxes use. */
async function writePages(): Promise<string> {
  const { api, a1 } = scene;
  const body = { display_name: 'another name' };
  for (let at = 0; at < 2; at += 1)
    await api.ask('PATCH', '/api/v1/orgs/current/info', { key: a1.admin.key, body });
  const { workspaceKey: key } = a1;
  let profile = '';
  for (const name of ['one', 'two'])
    profile = (await api.ask('POST', '/v1/proxy-profiles', { key, body: { name, proxy_config: {} } })).body
      .id;
  const record = { time: new Date().toISOString(), sandbox: 'here', revision: 1, outcome: 'forwarded' };
  const records = [1, 2].map((number) => ({ ...record, number, bytes_up: 0, bytes_down: 0, duration_ms: 1 }));
  const sending = prober.authorize(operationOf('POST /v1/sandbox-records'));
  const batch = { source: randomUUID(), records };
  await api.ask('POST', '/v1/sandbox-records', { ...sending, body: batch });
  for (const name of ['fuzzed-1', 'fuzzed-2']) {
    const given = { name, proxy_profile_id: profile };
    const { status, body: box } = await api.ask('POST', '/v2/sandboxes/boxes', { key, body: given });
    expect([name, status]).toEqual([name, 201]);
    const scope = { workspaceId: a1.workspaceId, sandbox: String(box.id) };
    await storeRecords(api.database.owner.db, scope, recordBatch.parse(batch));
  }
  return profile;
}

function operationOf(title: string): Operation {
  const found = scene.operations.find((one) => one.title === title);
  if (found === undefined) throw new Error(`no route ${title}`);
  return found;
}

function hasCursor({ parameters }: Operation): boolean {
  return parameters.some(({ name }) => name === 'cursor');
}

/** The cursor with one of its values replaced. */
function changedCursors(cursor: string): readonly string[] {
  const held = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  const others = [
    '0',
    '-1',
    '-0',
    '1e15',
    '9007199254740991',
    '-9007199254740991',
    '8640000000000001',
    '""',
    'null',
  ];
  const texts = [
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999999Z',
    '999999999999999999',
    canary,
    '\0',
  ];
  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  return Object.keys(held).flatMap((name) =>
    [...others, ...texts.map((text) => JSON.stringify(text))].map((text) => {
      const changed = Array.isArray(held) ? [...held] : { ...held };
      changed[name] = asWritten(text);
      return encode(JSON.stringify(changed));
    }),
  );
}
