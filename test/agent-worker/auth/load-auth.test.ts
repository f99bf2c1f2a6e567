// Handlers of a deployment, made by the SDK itself: what they are shown, what becomes of what they return, and which of them a
// worker refuses to load.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
import '../../../src/agent-worker/auth/authentication.ts';
import '../../../src/agent-worker/auth/authorization.ts';
import '../../../src/agent-worker/auth/plain-json.ts';
import { loadAuth } from '../../../src/agent-worker/auth/load-auth.ts';
import type { CallContext, Methods } from '../../../src/agent-worker/method.ts';
import type { AgentUser, RequestToAuthenticate } from '../../../src/agent-worker/protocol/calls.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

declare global {
  var authOfThisTest: unknown;
}

let scratch: Scratch;
let files = 0;

beforeAll(async () => {
  scratch = await createScratch();
});
afterAll(() => scratch?.[Symbol.asyncDispose]());

const context = { signal: new AbortController().signal } as CallContext;
const USER: AgentUser = { identity: 'ada', display_name: 'ada', is_authenticated: true, permissions: ['p'] };
const REQUEST: RequestToAuthenticate = {
  method: 'POST',
  url: 'http://127.0.0.1:2024/threads?limit=1',
  headers: { authorization: 'Bearer one', cookie: 'a=1; b=2', host: '127.0.0.1:2024' },
};

/** The methods of a file that exports the object. */
async function load(auth: unknown): Promise<Methods> {
  const file = join(scratch.path, `auth-${(files += 1)}.mjs`);
  globalThis.authOfThisTest = auth;
  await writeFile(file, 'export const auth = globalThis.authOfThisTest;\n');
  const { methods } = await loadAuth({ file, name: 'auth', source: './auth.ts:auth' });
  return methods;
}

const authenticate = async (handler: (request: Request) => unknown): Promise<AgentUser> => {
  const methods = await load(new Auth().authenticate(handler as never));
  return methods['auth.authenticate']!(REQUEST, context);
};

describe('authenticate', () => {
  it('gets the request with its method, address and fields, and without a body', async () => {
    let seen: unknown;
    await authenticate((request) => {
      const { method, url, headers, body } = request;
      seen = { method, url, body, fields: Object.fromEntries(headers) };
      return 'ada';
    });
    const { headers: fields, ...rest } = REQUEST;
    expect(seen).toEqual({ ...rest, fields, body: null });
  });

  it('may return the identity alone', async () => {
    const filled = { identity: 'ada', display_name: 'ada', is_authenticated: true, permissions: [] };
    expect(await authenticate(() => 'ada')).toEqual(filled);
    expect(await authenticate(async () => 'ada')).toEqual(filled);
  });

  it('keeps what a user has besides, as JSON has it', async () => {
    const user = await authenticate(() => ({
      ...{ identity: 'ada', display_name: 'Ada', is_authenticated: false, permissions: ['a', 1, 'b'] },
      ...{ token: 'secret', since: new Date(0), nothing: undefined, org: { id: 7 } },
    }));
    expect(user).toEqual({
      ...{ identity: 'ada', display_name: 'Ada', is_authenticated: false, permissions: ['a', 'b'] },
      ...{ token: 'secret', since: '1970-01-01T00:00:00.000Z', org: { id: 7 } },
    });
  });

  it.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['true', true],
    ['an empty text', ''],
    ['no identity', { name: 'ada' }],
    ['an identity that is no text', { identity: 7 }],
    ['a list', ['ada']],
    ['a bigint', { identity: 'ada', n: 1n }],
  ])('is refused when it returns %s', async (_, returned) => {
    await expect(authenticate(() => returned)).rejects.toMatchObject({ name: 'Refusal', code: 'invalid' });
  });

  it('lets what it throws pass with status and fields', async () => {
    const thrown = new HTTPException(401, { message: 'who are you?', headers: { 'x-hint': 'one' } });
    await expect(authenticate(() => Promise.reject(thrown))).rejects.toBe(thrown);
  });
});

const authorize = async (callbacks: Readonly<Record<string, unknown>>, action = 'read', value = {}) => {
  const auth = new Auth().authenticate(() => 'ada');
  for (const [event, callback] of Object.entries(callbacks)) auth.on(event as never, callback as never);
  const methods = await load(auth);
  return methods['auth.authorize']!({ resource: 'threads', action, value, user: USER }, context);
};

describe('authorize', () => {
  it('asks the most specific handler alone', async () => {
    const order = ['threads:read', 'threads', '*:read', '*'];
    for (const [at, name] of order.entries()) {
      const asked: string[] = [];
      const fitting = order.slice(at).map((event) => [event, () => void asked.push(event)]);
      const others = { 'threads:create': () => void asked.push('other'), assistants: () => false };
      await authorize({ ...Object.fromEntries(fitting), ...others });
      expect(asked).toEqual([name]);
    }
  });

  it('allows everything where no handler fits', async () => {
    expect(await authorize({ assistants: () => false }, 'read', { a: 1 })).toEqual({
      isAllowed: true,
      value: { a: 1 },
    });
  });

  it('shows the handler event, value and user', async () => {
    let seen: unknown;
    await authorize({ '*': (one: unknown) => void (seen = one) }, 'create_run', { thread_id: 't' });
    expect(seen).toEqual({
      ...{ event: 'threads:create_run', resource: 'threads', action: 'create_run' },
      ...{ value: { thread_id: 't' }, user: USER, permissions: ['p'] },
    });
  });

  it.each<readonly [string, unknown, unknown]>([
    ['nothing', undefined, { isAllowed: true, value: {} }],
    ['null', null, { isAllowed: true, value: {} }],
    ['true', true, { isAllowed: true, value: {} }],
    ['false', false, { isAllowed: false }],
    [
      'a filter',
      { owner: { $eq: 'ada' } },
      { isAllowed: true, filter: { owner: { $eq: 'ada' } }, value: {} },
    ],
    ['an empty filter', {}, { isAllowed: true, filter: {}, value: {} }],
  ])('returns %s', async (_, returned, expected) => {
    expect(await authorize({ '*': async () => returned })).toEqual(expected);
  });

  it('keeps what the handler adds to the metadata', async () => {
    const add = ({ value }: { value: { metadata?: Record<string, unknown> | null } }): void => {
      if ('metadata' in value) (value.metadata ??= {})['owner'] = 'ada';
    };
    expect(await authorize({ '*': add }, 'create', { metadata: null })).toEqual({
      isAllowed: true,
      value: { metadata: { owner: 'ada' } },
    });
  });

  it.each<readonly [string, unknown]>([
    ['a text', 'yes'],
    ['a number', 1],
    ['a list', [{ owner: 'ada' }]],
    ['undefined in a filter', { owner: undefined }],
    ['undefined below an operator', { owner: { $eq: undefined } }],
    ['undefined in a list', { tags: { $contains: ['a', undefined] } }],
    ['a function in a filter', { owner: () => 'ada' }],
    ['a number that is not finite', { owner: Number.NaN }],
    ['an object of a class', { owner: new Date(0) }],
    ['a bigint', { owner: 1n }],
  ])('is refused when it returns %s', async (_, returned) => {
    await expect(authorize({ '*': () => returned })).rejects.toMatchObject({
      name: 'Refusal',
      code: 'invalid',
      message: expect.stringContaining('threads:read'),
    });
  });
});

describe('a worker refuses to load', () => {
  it.each<readonly [string, unknown, string]>([
    ['what is no object', 'auth', 'is no Auth object'],
    ['an object of another kind', {}, 'is no Auth object'],
    ['handlers without authenticate', new Auth().on('*', () => true), 'has no authenticate handler'],
    [
      'a handler that is no function',
      { '~handlerCache': { authenticate: () => 'ada', callbacks: { threads: true } } },
      'the handler of threads is no function',
    ],
  ])('%s', async (_, auth, message) => {
    await expect(load(auth)).rejects.toMatchObject({
      name: 'LoadError',
      key: 'auth.path',
      message: expect.stringContaining(message),
    });
  });

  it('a file without the export, and a file that throws', async () => {
    const file = join(scratch.path, 'throws.mjs');
    await writeFile(file, 'throw new Error("no database");\n');
    const load = (name: string, path: string) => loadAuth({ file: path, name, source: './auth.ts' });
    await expect(load('auth', file)).rejects.toThrow('./auth.ts cannot be loaded: no database');
    const other = join(scratch.path, 'other.mjs');
    await writeFile(other, 'export const other = 1;\n');
    await expect(load('auth', other)).rejects.toThrow('the file has no export auth');
  });
});
