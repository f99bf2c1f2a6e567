// Every route of the document with all that its schemas tell to be valid, at the limit or wrong, and much that no schema
// tells of: no fault, no status and no body but documented ones, nothing written by what is refused, one event each.
// PROPERTY_SEED replays a run, EVERY_ROUTE_RUNS makes it longer.
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { propertySeed } from '../../properties/property-seed.ts';
import type { Ask } from '../../support/platform-api.ts';
import { type ChangeLog, createChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { fillPath, type PathValues, toPath } from './fixtures.ts';
import { judge } from './judgement.ts';
import { bodyProbe, probesOf, type Sent } from './probes.ts';
import { createExample, type EveryRoute, mightiest, openEveryRoute } from './scene.ts';
import { validValues } from './schema-values.ts';
import { asWritten, canary, variantsOf } from './schema-variants.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const seed = propertySeed();
const runs = Number(process.env['EVERY_ROUTE_RUNS'] ?? 10);

let scene: EveryRoute;
let log: ChangeLog;
let sandboxToken: string;
beforeAll(async () => {
  scene = await openEveryRoute({ maxBodyBytes: MAX_BODY_BYTES });
  const { api, a1 } = scene;
  const ask = { key: a1.workspaceKey, body: {} };
  const [made] = await Promise.all([1, 2].map(() => api.ask('POST', '/v1/sandboxes/here/tokens', ask)));
  sandboxToken = made?.body.token;
  // Something to turn pages of.
  const record = { time: new Date().toISOString(), sandbox: 'here', revision: 1, outcome: 'forwarded' };
  const records = [1, 2].map((number) => ({ ...record, number, bytes_up: 0, bytes_down: 0, duration_ms: 1 }));
  const body = { source: randomUUID(), records };
  await api.ask('POST', '/v1/sandbox-records', { key: sandboxToken, body });
  log = await createChangeLog(api.database.owner.db);
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Whoever may: what is refused is then refused for what it says. */
function asRightOne(operation: Operation): Ask {
  return operation.route.access.to === 'sandbox' ? { key: sandboxToken } : mightiest(operation, scene.a1);
}

/** Complaints about one answer; true when the request was served. */
async function probe(
  { path, ask, ...sent }: Sent,
  values: PathValues,
): Promise<{ readonly found: readonly string[]; readonly isServed: boolean }> {
  const answer = await scene.api.ask(sent.operation.method, path(values), {
    ...asRightOne(sent.operation),
    ...ask,
  });
  return { found: judge(sent, answer, await log.take()), isServed: answer.status < 300 };
}

describe('every route', () => {
  it('takes what is valid and refuses what is not, one wrong thing at a time', async () => {
    const found: string[] = [];
    let sent = 0;
    for (const operation of scene.operations) {
      const example = await createExample(scene.api, operation, scene.a1, seed);
      let { values } = example;
      await log.take();
      for (const one of probesOf(example, MAX_BODY_BYTES)) {
        const told = await probe(one, values);
        sent += 1;
        found.push(...told.found);
        if (told.found.length) console.error(told.found.join('\n'));
        if (!told.isServed) continue;
        values = await fillPath(operation, { api: scene.api, place: scene.a1 });
        await log.take();
      }
    }
    expect([seed, found.slice(0, 40), found.length]).toEqual([seed, [], 0]);
    expect(sent).toBeGreaterThan(1000);
  }, 300_000);

  it('does so for values at random', async () => {
    for (const operation of scene.operations) {
      const { body } = operation;
      if (body === undefined) continue;
      const changed = fc.tuple(validValues(body.schema), fc.nat(), fc.boolean());
      await fc.assert(
        fc.asyncProperty(changed, async ([value, which, isWhole]) => {
          const example = await createExample(scene.api, operation, scene.a1, seed);
          await log.take();
          const variants = variantsOf(body.schema, value);
          const variant = isWhole ? { what: 'as it is', at: '', value } : variants[which % variants.length];
          const told = await probe(
            bodyProbe(example, variant?.value, `${variant?.at} ${variant?.what}`),
            example.values,
          );
          expect(told.found).toEqual([]);
        }),
        { seed, numRuns: runs },
      );
    }
  }, 300_000);

  it('takes no cursor that was changed on its way for a fault of its own', async () => {
    const { api, a1, operations } = scene;
    const found: string[] = [];
    for (const operation of operations.filter(hasCursor)) {
      const example = await createExample(api, operation, a1, seed);
      const as = asRightOne(operation);
      const path = toPath(operation.path, { ...example.values, sandbox: 'here' });
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

function hasCursor({ parameters }: Operation): boolean {
  return parameters.some(({ name }) => name === 'cursor');
}

/** With another value in the place of one that it holds. */
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
