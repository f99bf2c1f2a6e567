// docs/api-contracts.md against the routes: each path has one contract, and its response the status and the shape of its row.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { statusesOf } from '../../../src/platform/api/responses.ts';
import type { Route } from '../../../src/platform/api/route.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import { adminOf, createExample, type EveryRoute, openEveryRoute, send } from '../every-route/scene.ts';
import { publicShapes, type Schema } from './public-shapes.ts';

type Row = {
  readonly title: string;
  readonly contract: string;
  readonly success: string;
  readonly shape: string;
  readonly failures: string;
};

const table: readonly Row[] = readFileSync(join(projectRoot, 'docs/api-contracts.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const cells = /^\| ([A-Z]+) \| `([^`]+)` \|(.*)\|$/.exec(line);
    if (cells === null) return [];
    const [contract = '', success = '', shape = '', failures = ''] = (cells[3] ?? '')
      .split('|')
      .map((cell) => cell.trim());
    return [{ title: `${cells[1]} ${cells[2]}`, contract, success, shape, failures }];
  });
const pages = table.filter(({ contract }) => contract === 'page');

let scene: EveryRoute;
beforeAll(async () => {
  scene = await openEveryRoute();
});
afterAll(() => scene[Symbol.asyncDispose]());

function schemaOf({ shape }: Row): Schema {
  const [, listed] = /^list of (\w+)$/.exec(shape) ?? [];
  const schema = publicShapes[listed ?? shape];
  if (schema === undefined) throw new Error(`${shape} is not in test/platform/contract/public-shapes.ts`);
  return listed === undefined ? schema : { type: 'array', items: schema };
}

function titleOf({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/** Whether a schema of the document rejects a member that it does not name, at any depth. */
function isStrict(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  if ((schema as Schema)['additionalProperties'] === false) return true;
  return Object.values(schema).some(isStrict);
}

/** Of the public contract, with a part whose further members would be lost: it refuses them, and no others. */
const REFUSING: ReadonlySet<string> = new Set(['POST /api/v1/bulk-exports/destinations']);

/** A body of an object, or of a list of objects, with more members. */
function withUnknown(body: unknown, unknown: object): unknown {
  if (Array.isArray(body)) return body.map((one) => withUnknown(one, unknown));
  return body === undefined ? undefined : { ...(body as object), ...unknown };
}

describe('the table of contracts', () => {
  it('has one row for every route, with its statuses', () => {
    const rows = table.map(({ title, success, failures }) => [title, success, failures]);
    const routes = scene.api.routes.map((route) => [
      titleOf(route),
      statusesOf(route.responses).join(' '),
      (route.failures ?? []).join(' '),
    ]);
    expect(rows.toSorted()).toEqual(routes.toSorted());
  });

  /** Clients take a prefix off their endpoint before they append an address of an attachment. */
  const OURS = / (?:\/v1\/(?!projects\/)|\/api\/v1\/attachments$)/;

  it('has our own routes below /v1, and no others there besides pages', () => {
    for (const { title, contract } of table) {
      expect(['public', 'ours', 'page']).toContain(contract);
      expect([title, contract === 'ours']).toEqual([title, OURS.test(title)]);
    }
    expect(pages.map(({ title }) => title)).toEqual([
      'GET /login',
      'POST /login',
      'POST /logout',
      'GET /traces',
      'GET /traces/{session_id}',
      'GET /traces/{session_id}/{trace_id}',
      'GET /traces/runs/{run_id}/{field}',
      'GET /exports',
      'GET /exports/{bulk_export_id}',
      'GET /openapi.json',
      'GET /docs',
    ]);
  });

  it('is lenient for the public contract, and strict for ours', () => {
    for (const { title, contract } of table) {
      const operation = scene.operations.find((one) => one.title === title);
      const route = scene.api.routes.find((one) => titleOf(one) === title);
      const body = operation?.body;
      expect([title, route?.unknownNames]).toEqual([title, contract === 'ours' ? 'refuse' : 'pass']);
      const isRefusing = contract === 'ours' || REFUSING.has(title);
      if (body !== undefined) expect([title, isStrict(body.schema)]).toEqual([title, isRefusing]);
    }
  });

  it('has the status and the shape of every public response', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    const found: unknown[] = [];
    for (const row of table.filter(({ contract }) => contract === 'public')) {
      // A body that is read as a stream has tests of its own.
      if (scene.api.routes.some((route) => route.upload && titleOf(route) === row.title)) continue;
      const operation = scene.operations.find(({ title }) => title === row.title);
      if (operation === undefined) throw new Error(`${row.title} is no route`);
      const example = await createExample(scene.api, operation, scene.a1);
      const unknown = { a_field_of_the_future: { deep: [1] } };
      const body = withUnknown(example.body, unknown);
      const query = { ...example.query, a_parameter_of_the_future: '1' };
      const response = await send(scene.api, { ...example, body, query }, adminOf(operation, scene.a1));
      if (!row.success.split(' ').includes(String(response.status)))
        found.push([row.title, response.status, response.text]);
      if (row.shape === 'nothing') expect(response.text).toBe('');
      else if (!ajv.validate(schemaOf(row), response.body))
        found.push([row.title, ajv.errors, response.text]);
    }
    expect(found).toEqual([]);
  });

  it('sees a response of another shape', () => {
    const ajv = new Ajv2020({ strict: false });
    for (const [name, schema] of Object.entries(publicShapes))
      expect([name, ajv.validate(schema, 'text')]).toEqual([name, name === 'anything']);
  });
});
