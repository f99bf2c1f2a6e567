// Fuzz target: the admin API reads a body the same however it is split, responds with one of its statuses, and repeats no
// credential from the body. Input: how the bytes are split, the route that they are sent to, then the bytes.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { createAccessGuard } from '../../../src/admin/access-guard.ts';
import type { AdminResponse } from '../../../src/admin/admin-errors.ts';
import { UnauthenticatedRecords } from '../../../src/admin/admin-records.ts';
import { type AdminScope, handleRequest } from '../../../src/admin/request-pipeline.ts';
import { routes } from '../../../src/admin/routes.ts';
import { Readers } from '../../../src/admin/records/record-stream.ts';
import { WriteGate } from '../../../src/admin/write-gate.ts';
import { RateLimit } from '../../../src/base/rate-limit.ts';
import { RequestBody } from '../../../src/base/http/request-body.ts';
import { readRequestHead } from '../../../src/base/http/request-head.ts';
import { createRouteTable } from '../../../src/base/http/route-table.ts';
import { createLog } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secret.ts';
import { createValidatingTarget } from '../validating-target.ts';
import { readJson, stringsOf } from '../simple-json.ts';
import { split } from '../split.ts';

const TOKEN = 'fuzz-token-of-the-admin-api-0123456789';
const MAX_BODY_BYTES = 3000;
const WRITE_LIMITS = { writesInAll: 24, writesAtOnce: 8, writesPerSecond: 100, stallMs: 30_000 };
const MIN_CREDENTIAL = 40;
const STATUSES: readonly number[] = [200, 201, 204, 400, 404, 409, 412, 413, 422];
const writes = routes.filter(({ method }) => method !== 'GET' && method !== 'DELETE');

export async function fuzz(data: Buffer): Promise<void> {
  const { whole, pieces } = split(Buffer.concat([data.subarray(0, 1), data.subarray(2)]));
  const route = writes[(data[1] ?? 0) % writes.length];
  if (route === undefined) return;
  const response = await ask(route, [whole]);
  assert.deepEqual(await ask(route, pieces), response, 'the split changes the response');
  assert(STATUSES.includes(response.status), `status ${response.status}`);
  const json = readJson(whole);
  if (response.status < 300) assert(json !== undefined && whole.length <= MAX_BODY_BYTES);
  if (whole.length > MAX_BODY_BYTES) assert.equal(response.status, 413);
  const shown = JSON.stringify(response);
  const long = stringsOf(json?.value).filter((text) => text.length >= MIN_CREDENTIAL);
  // Responses show the names of entries and patterns in full, as their authors gave them; values, never.
  if (response.status === 422 && /secrets/.test(route.path))
    for (const text of long) assert(!shown.includes(JSON.stringify(text).slice(1, -1)), 'a value is shown');
}

async function ask(route: (typeof routes)[number], pieces: readonly Buffer[]): Promise<AdminResponse> {
  const { scope, errors } = createScope();
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const rawHeaders = ['Host', 'localhost', 'Authorization', `Bearer ${TOKEN}`];
  rawHeaders.push('Content-Type', 'application/json', 'Transfer-Encoding', 'chunked');
  const url = route.path.replace('{id}', 'default');
  const head = readRequestHead({ method: route.method, url, httpVersion: '1.1', rawHeaders });
  const body = new RequestBody(Readable.from(pieces, { objectMode: false }), { head });
  const response = await handleRequest(scope, {
    requestId: 'r',
    head,
    body,
    client: '127.0.0.1',
    startedMs: 0,
    closed: Promise.resolve(undefined),
    draining: new AbortController().signal,
    left: () => new AbortController().signal,
    onAuthenticated: () => undefined,
  });
  assert.deepEqual(errors, [], 'an error of ours');
  assert(body.isComplete || length > MAX_BODY_BYTES, 'a body that fits is not read to its end');
  return response;
}

function createScope(): { readonly scope: AdminScope; readonly errors: readonly string[] } {
  const errors: string[] = [];
  const log = createLog('error', { write: (line) => void errors.push(line) });
  const now = (): number => 0;
  const rate = new RateLimit(100, 1000, now);
  const record = (): void => undefined;
  const isRecordBlocked = (): boolean => false;
  const guard = createAccessGuard({ token: new Secret(TOKEN), hosts: [], wrongTokens: rate });
  const unauthenticated = new UnauthenticatedRecords({ rate, log, record, isRecordBlocked });
  const writes = new WriteGate({ ...WRITE_LIMITS, bodyBytes: MAX_BODY_BYTES }, now);
  const findRoute = createRouteTable(routes);
  const target = createValidatingTarget();
  const bodyBytes = MAX_BODY_BYTES;
  const outlets = { record, isRecordBlocked, unauthenticated };
  const readers = new Readers(1);
  return { scope: { target, guard, findRoute, writes, readers, bodyBytes, log, ...outlets }, errors };
}
