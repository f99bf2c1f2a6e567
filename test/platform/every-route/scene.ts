// Every operation of the document and a running API with two organizations: A with the workspaces A1 and A2, B with B1.
// Creates requests of an operation from its schemas.
import * as fc from 'fast-check';
import { statusesOf } from '../../../src/platform/api/responses.ts';
import {
  type Ask,
  type Asked,
  createPlatformApi,
  type PlatformApi,
  type PlatformApiOptions,
} from '../../support/platform-api.ts';
import { openS3Server } from '../../support/s3-server.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createDigest, type Digest } from './database-digest.ts';
import { type Operation, readOperations } from './document.ts';
import {
  addFixtures,
  createTenant,
  fillPath,
  fillQuery,
  type PathValues,
  type RouteFixtures,
  type Tenant,
  toPath,
  withFixtures,
} from './fixtures.ts';
import { validValues } from './schema-values.ts';

export type EveryRoute = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly operations: readonly Operation[];
  readonly digest: Digest;
  readonly a1: Tenant;
  readonly a2: Tenant;
  readonly b1: Tenant;
};

/** Routes of a test, in addition to those of the platform, and real values for their ids. */
export type EveryRouteOptions = Pick<
  PlatformApiOptions,
  'modules' | 'migrations' | 'routes' | 'wrap' | 'maxBodyBytes' | 'now'
> & {
  readonly fixtures?: RouteFixtures;
};

export async function openEveryRoute(options: EveryRouteOptions = {}): Promise<EveryRoute> {
  const s3 = await openS3Server();
  const fixtures = addFixtures({ ...options.fixtures, s3: s3.endpoint });
  const api = await createPlatformApi({
    ...options,
    config: { exports: exportsTo(s3.endpoint) },
    drainsEvents: true,
  });
  for (const statement of RECONCILED_AT_ONCE) await sql.raw(statement).execute(api.database.owner.db);
  const a1 = await createTenant(api);
  const a2 = await createTenant(api, a1.organizationId);
  return {
    api,
    operations: readOperations((await api.ask('GET', '/openapi.json')).body, api.routes).filter(
      // A body that is no JSON, and an address that this platform signs, have tests of their own.
      ({ route }) => route.upload === undefined && route.access.to !== 'attachment',
    ),
    digest: await createDigest(api.database.owner.db),
    ...{ a1, a2, b1: await createTenant(api) },
    async [Symbol.asyncDispose]() {
      fixtures[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
      await s3[Symbol.asyncDispose]();
    },
  };
}

/** Generated destinations lead nowhere else. */
function exportsTo(endpoint: string): object {
  return { allowed_endpoints: [endpoint], cleartext_endpoints: [endpoint], allow_loopback: true };
}

/** No process reconciles the boxes of these tests: what waits for one finds it done. */
const RECONCILED_AT_ONCE: readonly string[] = [
  `create function test_reconcile() returns trigger language plpgsql as $$
    begin
      if new.status = 'deleting' then return new; end if;
      new.status = case when new.desired = 'stopped' then 'stopped' else 'ready' end;
      new.applied_version = new.policy_version;
      new.applied_token_version = new.token_version;
      new.needs_proxy_token = true;
      return new;
    end $$`,
  `create trigger test_reconcile before insert or update on boxes for each row execute function test_reconcile()`,
  `create function test_remove() returns trigger language plpgsql security definer as $$
    begin
      delete from boxes where id = new.id;
      return null;
    end $$`,
  `create trigger test_remove after update on boxes for each row when (new.status = 'deleting')
    execute function test_remove()`,
];

/** One request of an operation, part by part. */
export type Example = {
  readonly operation: Operation;
  readonly values: PathValues;
  readonly query: Readonly<Record<string, unknown>>;
  /** Undefined when there is none. */
  readonly body: unknown;
};

/** A request that the document allows, for real resources of the tenant. */
export async function createExample(
  api: PlatformApi,
  operation: Operation,
  tenant: Tenant,
  seed: number = Math.trunc(Math.random() * 2 ** 31),
): Promise<Example> {
  const scene = { api, tenant };
  const body = operation.body === undefined ? undefined : fullest(validValues(operation.body.schema), seed);
  return {
    operation,
    values: await fillPath(operation, scene),
    query: await fillQuery(operation, scene),
    body: operation.body === undefined ? undefined : await withFixtures(operation.body.schema, body, scene),
  };
}

/** The one with the most fields of some random values, so that no field is left out. */
function fullest(arbitrary: fc.Arbitrary<unknown>, seed: number): unknown {
  // The schemas refuse this name in words alone, which the generator does not read.
  const served = arbitrary.filter((value) => !JSON.stringify(value)?.includes('"__proto__":'));
  const found = fc.sample(served, { seed, numRuns: 10 });
  return found.toSorted((a, b) => membersOf(b) - membersOf(a))[0];
}

function membersOf(value: unknown): number {
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

export function send(api: PlatformApi, example: Example, as: Ask): Promise<Asked> {
  const { operation, values, query, body } = example;
  return api.ask(operation.method, toPath(operation.path, values) + toQuery(query), {
    ...(body === undefined ? {} : { body }),
    ...as,
  });
}

export function toQuery(query: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)]),
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** The status of a request that is served; no route has two so far. */
export function successOf({ route }: Operation): number {
  const [status] = statusesOf(route.responses);
  if (status === undefined) throw new Error(`${route.path} has no response`);
  return status;
}

/** An administrator of the tenant; a user, because some routes are for users only. */
export function adminOf({ route }: Operation, tenant: Tenant): Ask {
  const { key } = tenant.admin;
  return route.access.to === 'workspace' ? { key, tenant: tenant.workspaceId } : { key };
}
