// Handlers of a deployment in a worker of the product: what they throw and return reaches the client over two processes, and one
// that never ends keeps nobody else waiting for long.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { z } from '../../../../src/base/schema.ts';
import type { GraphWorkers } from '../../../../src/platform/agent-server/workers/graph-workers.ts';
import { startGraphWorkers } from '../../../../src/platform/agent-server/workers/started-workers.ts';
import { defaultWorkerLimits } from '../../../../src/platform/agent-server/workers/worker-limits.ts';
import { defineRoute } from '../../../../src/platform/api/route.ts';
import { createTestGate } from '../../../support/agent-gate.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import { projectRoot } from '../../../support/spawned-process.ts';

const AUTH = `
import { Auth, HTTPException } from '${import.meta.resolve('@langchain/langgraph-sdk/auth')}';
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, name] = /^Bearer (\\w+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
    if (name === undefined) throw new HTTPException(401, { message: 'Who?', headers: { 'x-hint': 'bearer' } });
    if (name === 'loop') for (;;);
    if (name === 'exit') process.exit(1);
    return { identity: name, permissions: ['read'], database: process.env.DATABASE_URL ?? null };
  })
  .on('threads:create', ({ value, user }) => {
    (value.metadata ??= {}).owner = user.identity;
    return user.identity === 'undefined' ? { owner: undefined } : { owner: user.identity };
  });
`;

const logged: string[] = [];
let api: PlatformApi;
let workers: GraphWorkers;
let scratch: Scratch;

beforeAll(async () => {
  scratch = await createScratch();
  const file = join(scratch.path, 'auth.mjs');
  await writeFile(file, AUTH);
  const module = { file, name: 'auth', source: './auth.ts:auth' };
  const log = createLog('debug', { write: (line) => void logged.push(line) });
  workers = await startGraphWorkers({
    deployment: { root: projectRoot, env: {}, load: { root: projectRoot, graphs: {}, auth: module } },
    limits: { ...defaultWorkerLimits, workers: 2 },
    log,
  });
  const gate = createTestGate({ workers, onLine: (line) => void logged.push(line) });
  const route = defineRoute({
    ...{ method: 'POST', path: '/asked', tag: 'Test', summary: 'what handlers say' },
    access: gate.access,
    tracking: { untracked: 'a test' },
    responses: { 200: z.record(z.string(), z.unknown()) },
    prepare: (call) => gate.authorize(call, 'threads:create', { metadata: undefined }),
    handle: async ({ user }, { filter, value }) => ({ body: { user: user ?? null, filter, value } }),
  });
  api = await createPlatformApi({ routes: [route] });
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await workers?.close();
  await scratch?.[Symbol.asyncDispose]();
});

const ask = (bearer?: string): Promise<Asked> =>
  api.ask('POST', '/asked', bearer === undefined ? {} : { bearer });

it('decide who is let in, and what they see', async () => {
  expect((await ask('ada')).body).toEqual({
    user: {
      ...{ identity: 'ada', display_name: 'ada', is_authenticated: true, permissions: ['read'] },
      database: null,
    },
    filter: [{ key: 'owner', operator: 'equals', value: 'ada' }],
    value: { metadata: { owner: 'ada' } },
  });
});

it('reject with their status, fields and message', async () => {
  const { status, headers, body } = await ask();
  expect([status, headers.get('x-hint'), body.detail]).toEqual([401, 'bearer', 'Who?']);
});

it('let nobody go on with a filter that JSON would have emptied', async () => {
  const { status, body } = await ask('undefined');
  expect([status, body.detail]).toEqual([500, expect.stringContaining('threads:create')]);
});

it('that end their worker, or never end, let nobody in and others go on', {
  tags: 'long',
  timeout: 40_000,
}, async () => {
  const [ended, endless] = [ask('exit'), ask('loop')];
  expect((await ended).status).toBe(503);
  expect((await ask('eve')).status).toBe(200);
  expect((await endless).status).toBe(503);
  expect((await ask('ada')).status).toBe(200);
});
