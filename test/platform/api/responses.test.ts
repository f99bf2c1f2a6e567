// What a handler returns fits the responses of its route. Most of it is checked by the compiler: each `@ts-expect-error`
// fails the type check of this file where the line below it compiles.
import { describe, expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { anyone, inOrganization, inWorkspace } from '../../../src/platform/api/access.ts';
import {
  chooseResponse,
  type Outcome,
  type OutcomeOf,
  statusesOf,
} from '../../../src/platform/api/responses.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';
import type { Transaction } from '../../../src/platform/store/database.ts';

const shared = {
  method: 'POST',
  path: '/a',
  tag: 'Test',
  summary: 'a route',
  tracking: { untracked: 'a test' },
} as const;
const one = z.strictObject({
  id: z.uuid(),
  role: z.enum(['A', 'B']),
  at: z.iso.datetime(),
  note: z.string().optional(),
});
const responses = { 200: one, 207: z.array(one) };
const id = '1';
const at = new Date();

describe('the type of an outcome', () => {
  it('is that of one response, by its status', () => {
    const right: readonly OutcomeOf<typeof responses>[] = [
      { status: 200, body: { id, role: 'A', at } },
      { status: 207, body: [{ id, role: 'B', at: '2030-01-01T00:00:00Z', note: 'text' }] },
    ];
    // @ts-expect-error: the body of another status
    const crossed: OutcomeOf<typeof responses> = { status: 207, body: { id, role: 'A', at } };
    // @ts-expect-error: a status that is not among the responses
    const unknown: OutcomeOf<typeof responses> = { status: 201, body: { id, role: 'A', at } };
    // @ts-expect-error: two responses, and no status
    const unnamed: OutcomeOf<typeof responses> = { body: { id, role: 'A', at } };
    // @ts-expect-error: a missing member
    const short: OutcomeOf<{ 200: typeof one }> = { body: { id, at } };
    // @ts-expect-error: a member of another type
    const other: OutcomeOf<{ 200: typeof one }> = { body: { id: 1, role: 'A', at } };
    // @ts-expect-error: a text that is not among those of the schema
    const text: OutcomeOf<{ 200: typeof one }> = { body: { id, role: 'C', at } };
    // @ts-expect-error: a member that the schema does not have
    const more: OutcomeOf<{ 200: typeof one }> = { body: { id, role: 'A', at, more: 1 } };
    // @ts-expect-error: a body where there is none
    const full: OutcomeOf<{ 204: null }> = { body: { id } };
    expect([right, crossed, unknown, unnamed, short, other, text, more, full]).toHaveLength(9);
  });

  it('is checked where a route is defined', () => {
    const open = { ...shared, access: anyone } as const;
    const whole = async () => ({ body: { id, role: 'A' as const, at } });
    const short = async () => ({ body: { id } });
    const nothing = async () => undefined;
    const routes: readonly Route[] = [
      defineRoute({ ...open, responses: { 200: one }, handle: whole }),
      defineRoute({ ...open, responses: { 204: null }, handle: nothing }),
      // @ts-expect-error: the body lacks two members
      defineRoute({ ...open, responses: { 200: one }, handle: short }),
      // @ts-expect-error: a route with a body must return one
      defineRoute({ ...open, responses: { 200: one }, handle: nothing }),
      // @ts-expect-error: two responses, and no status
      defineRoute({ ...open, responses: { 200: one, 201: one }, handle: whole }),
    ];
    expect(routes).toHaveLength(5);
  });
});

/** As the vault and COPY do, it asks for a transaction. */
const copy = async (trx: Transaction): Promise<void> => void trx;

describe('the type of a call', () => {
  it('has what its access grants and nothing else', () => {
    const routes: readonly Route[] = [
      defineRoute({
        ...shared,
        access: inWorkspace('deployments:read'),
        responses: { 200: z.string() },
        handle: async ({ workspaceId, organizationId, caller }) => ({
          body: workspaceId + organizationId + caller.keyId,
        }),
      }),
      defineRoute({
        ...shared,
        access: inOrganization('organization:read'),
        responses: { 204: null },
        // @ts-expect-error: a call in an organization has no workspace
        handle: async ({ workspaceId }) => void workspaceId,
      }),
      defineRoute({
        ...shared,
        access: anyone,
        responses: { 204: null },
        // @ts-expect-error: nobody is known
        handle: async ({ caller }) => void caller,
      }),
      defineRoute({
        ...shared,
        access: anyone,
        responses: { 204: null },
        prepare: async () => 1,
        // @ts-expect-error: what is prepared has the type that `prepare` returns
        handle: async (_, prepared: string) => void prepared,
      }),
      defineRoute({
        ...shared,
        access: anyone,
        responses: { 204: null },
        // @ts-expect-error: `prepare` only reads
        prepare: async ({ db }) => db.deleteFrom('listeners').execute(),
        handle: async () => undefined,
      }),
      defineRoute({
        ...shared,
        access: anyone,
        responses: { 204: null },
        handle: async () => undefined,
        // @ts-expect-error: after the commit there is no transaction
        after: ({ db }) => void db,
      }),
      defineRoute({
        ...shared,
        access: inWorkspace('deployments:update'),
        tracking: { operation: 'update_listener' },
        responses: { 204: null },
        handle: ({ db }) => copy(db),
      }),
      defineRoute({
        ...shared,
        access: inWorkspace('deployments:update'),
        responses: { 204: null },
        // @ts-expect-error: what is not tracked has no transaction
        handle: ({ db }) => copy(db),
      }),
    ];
    expect(routes).toHaveLength(8);
  });
});

describe('the response of an outcome', () => {
  const find = (outcome: Outcome) => chooseResponse(responses, outcome);
  it('is that of its status', () => {
    expect(find({ status: 207, body: [] })).toEqual({ status: 207, response: responses[207] });
    expect(chooseResponse({ 204: null }, {})).toEqual({ status: 204, response: null });
    expect(statusesOf(responses)).toEqual([200, 207]);
  });

  it('must be one of the route', () => {
    expect(() => find({})).toThrow('none of the responses');
    expect(() => find({ status: 201 })).toThrow('none of the responses');
  });
});
