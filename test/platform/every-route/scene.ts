// Every operation of the document beside a running API with two organizations: A with the workspaces A1 and A2, B with
// B1. A request of an operation is made here as its schemas want it.
import * as fc from 'fast-check';
import type { Route } from '../../../src/platform/api/route.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { createDigest, type Digest } from './database-digest.ts';
import { type Operation, readOperations } from './document.ts';
import { fillPath, type PathValues, toPath, withFixtures } from './fixtures.ts';
import { validValues } from './schema-values.ts';
import { createPlace, type Place } from './tenants.ts';

export type EveryRoute = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly operations: readonly Operation[];
  readonly digest: Digest;
  readonly a1: Place;
  readonly a2: Place;
  readonly b1: Place;
};

export async function openEveryRoute(
  options: { readonly routes?: readonly Route[]; readonly maxBodyBytes?: number } = {},
): Promise<EveryRoute> {
  const api = await createPlatformApi(options);
  const a1 = await createPlace(api);
  const a2 = await createPlace(api, a1.organizationId);
  return {
    api,
    operations: readOperations((await api.ask('GET', '/openapi.json')).body, api.routes),
    digest: await createDigest(api.database.owner.db),
    ...{ a1, a2, b1: await createPlace(api) },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

/** One request of an operation, part by part. */
export type Example = {
  readonly operation: Operation;
  readonly values: PathValues;
  readonly query: Readonly<Record<string, unknown>>;
  /** Undefined where there is none. */
  readonly body: unknown;
};

/** A request that the document calls valid, for real things of the place. */
export async function createExample(
  api: PlatformApi,
  operation: Operation,
  place: Place,
  seed: number = Math.trunc(Math.random() * 2 ** 31),
): Promise<Example> {
  const scene = { api, place };
  const body = operation.body === undefined ? undefined : fullest(validValues(operation.body.schema), seed);
  return {
    operation,
    values: await fillPath(operation, scene),
    query: {},
    body: operation.body === undefined ? undefined : await withFixtures(operation.body.schema, body, scene),
  };
}

/** Of some at random the one with the most members, so that none of them is passed over. */
function fullest(arbitrary: fc.Arbitrary<unknown>, seed: number): unknown {
  const found = fc.sample(arbitrary, { seed, numRuns: 10 });
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

/** Whoever may do everything where the operation takes place; a user, since some routes are for users. */
export function mightiest({ route }: Operation, place: Place): Ask {
  const { key } = place.admin;
  return route.access.to === 'workspace' ? { key, tenant: place.workspaceId } : { key };
}
