// The worker's side of the protocol: loading, calls in both directions, cancelling, credit, and what breaks it.
import { HTTPException } from '@langchain/langgraph-sdk/auth';
import { describe, expect, it } from 'vitest';
import { CallCancelled, LoadError, type Methods, Refusal } from '../../src/agent-worker/method.ts';
import { WINDOW_BYTES } from '../../src/agent-worker/protocol/credit.ts';
import { PROTOCOL_VERSION } from '../../src/agent-worker/protocol/messages.ts';
import { LOADED, servedWorker, serveWith } from '../support/agent-worker/served-worker.ts';

const LOAD = { type: 'load', deployment: { root: '/', graphs: {} } } as const;
const END = { status: 'success', values: 'null', interrupts: '{}' } as const;

describe('a start', () => {
  it('says the version, loads, and is ready', async () => {
    await using worker = serveWith(async () => ({ methods: {}, app: undefined, loaded: LOADED }));
    expect(await worker.next()).toMatchObject({ type: 'hello', version: PROTOCOL_VERSION, pid: process.pid });
    worker.send(LOAD);
    expect(await worker.next()).toEqual({ type: 'ready', loaded: LOADED });
  });

  it.each([
    [new LoadError('graphs.agent', 'no export'), { key: 'graphs.agent', message: 'no export' }],
    [new TypeError('x is no function'), { key: 'graphs', message: 'TypeError: x is no function' }],
  ])('reports what cannot be loaded: %s', async (error, failure) => {
    await using worker = serveWith(async () => {
      throw error;
    });
    await worker.next();
    worker.send(LOAD);
    expect(await worker.next()).toEqual({ type: 'failed', failure });
  });

  it('rejects calls before it is ready', async () => {
    await using worker = serveWith(async () => ({ methods: {}, app: undefined, loaded: LOADED }));
    worker.send({ type: 'call', id: 0, method: 'run.start', params: {} });
    await expect(worker.ended).rejects.toThrow('a message call before ready');
  });
});

const methods = (method: Methods['run.start'] & {}): { readonly methods: Methods } => ({
  methods: { 'run.start': method },
});
const CALL = { type: 'call', id: 7, method: 'run.start', params: { run_id: 'r' } } as const;

describe('a call', () => {
  it('that starts a run says so before the graph does anything', async () => {
    await using worker = await servedWorker(methods(async () => END));
    worker.send(CALL);
    await worker.next();
    expect(worker.received.slice(-2)).toEqual([
      { type: 'events', id: 7, events: [] },
      { type: 'result', id: 7, value: END },
    ]);
  });

  it('sends the events of one turn together, and then its result', async () => {
    await using worker = await servedWorker(
      methods(async ({ run_id }, { emit }) => {
        await new Promise(setImmediate);
        await emit([{ event: 'values', data: '1' }]);
        await emit([{ event: 'values', data: '2' }]);
        return { ...END, values: JSON.stringify(run_id) };
      }),
    );
    worker.send(CALL);
    expect(await worker.next()).toEqual({
      type: 'events',
      id: 7,
      events: [
        { event: 'values', data: '1' },
        { event: 'values', data: '2' },
      ],
    });
    expect(await worker.next()).toEqual({ type: 'result', id: 7, value: { ...END, values: '"r"' } });
  });

  class CustomError extends Error {}
  it.each([
    ['thrown', new CustomError('Boo!'), { kind: 'thrown', error: 'CustomError', message: 'Boo!' }],
    ['of a class', new TypeError('x'), { kind: 'thrown', error: 'TypeError', message: 'x' }],
    ['thrown text', 'x', { kind: 'thrown', error: 'Error', message: 'x' }],
    [
      'of no handler',
      new HTTPException(401, { message: 'no', headers: { a: 'b' } }),
      { kind: 'thrown', error: 'HTTPException', message: 'no' },
    ],
    [
      'refused',
      new Refusal('not_found', 'no such'),
      { kind: 'refused', code: 'not_found', message: 'no such' },
    ],
  ])('fails as its method does: %s', async (_, thrown, error) => {
    await using worker = await servedWorker(methods(() => Promise.reject(thrown)));
    worker.send(CALL);
    expect(await worker.next()).toEqual({ type: 'error', id: 7, error });
  });

  it('that throws leaves a line for the operator, without the message of the error', async () => {
    await using worker = await servedWorker(methods(() => Promise.reject(new CustomError('of a user'))));
    worker.send(CALL);
    await worker.next();
    const line = await worker.next();
    expect(line).toMatchObject({ type: 'log', level: 'error', of: 7 });
    expect(JSON.stringify(line)).toMatch(/run\.start of run r has thrown CustomError at .*serve-worker/);
    expect(JSON.stringify(line)).not.toContain('of a user');
  });

  class OwnException extends HTTPException {}
  const ofClient = { status: 401, headers: { 'set-cookie': 'sid=internal' } };
  it.each([
    [
      new HTTPException(401, { message: 'no', headers: { a: 'b', c: 1 } as never }),
      { error: 'HTTPException', message: 'no', status: 401, headers: { a: 'b' } },
    ],
    [
      new OwnException(403, { message: 'no', headers: new Headers({ a: 'b' }) }),
      { error: 'OwnException', message: 'no', status: 403, headers: { a: 'b' } },
    ],
    [new HTTPException(200), { error: 'HTTPException', message: expect.any(String) }],
    [Object.assign(new CustomError('internal'), ofClient), { error: 'CustomError', message: 'internal' }],
    [
      Object.assign(new Error('no'), { name: 'HTTPException' }, ofClient),
      { error: 'HTTPException', message: 'no' },
    ],
  ])('of a handler has a status for an HTTPException alone: %s', async (thrown, error) => {
    await using worker = await servedWorker({
      methods: { 'auth.authenticate': () => Promise.reject(thrown) },
    });
    worker.send({ ...CALL, method: 'auth.authenticate' });
    expect(await worker.next()).toEqual({ type: 'error', id: 7, error: { kind: 'thrown', ...error } });
  });

  it.each(['state.get', 'constructor', 'http.request'])(
    'of what it does not have is refused: %s',
    async (method) => {
      await using worker = await servedWorker({});
      worker.send({ ...CALL, method });
      expect(await worker.next()).toMatchObject({
        type: 'error',
        error: { kind: 'refused', code: 'unsupported' },
      });
    },
  );

  it('is cancelled', async () => {
    const seen: unknown[] = [];
    await using worker = await servedWorker(
      methods(async (_, { signal, emit }) => {
        await emit([{ event: 'custom', data: '1' }]);
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        seen.push(signal.reason);
        await emit([]).catch((error: unknown) => seen.push(error));
        throw new Error('whatever the graph throws then');
      }),
    );
    worker.send(CALL);
    expect(await worker.next()).toMatchObject({ type: 'events' });
    worker.send({ type: 'cancel', id: 7, reason: 'rollback' });
    expect(await worker.next()).toEqual({
      type: 'error',
      id: 7,
      error: { kind: 'cancelled', reason: 'rollback' },
    });
    expect(seen).toEqual([seen[0], seen[0]]);
    expect(seen[0]).toBeInstanceOf(CallCancelled);
  });

  it('waits for credit, and goes on with it', async () => {
    const data = JSON.stringify('x'.repeat(1000));
    let emitted = 0;
    await using worker = await servedWorker(
      methods(async (_, { emit }) => {
        for (; emitted < 2000; emitted += 1) await emit([{ event: 'custom', data }]);
        return END;
      }),
    );
    worker.send(CALL);
    let bytes = 0;
    let events = 0;
    for (;;) {
      const message = await worker.next();
      if (message.type !== 'events') break;
      events += message.events.length;
      bytes += Buffer.byteLength(JSON.stringify(message));
      if (bytes < WINDOW_BYTES) continue;
      const atPause = emitted;
      await new Promise(setImmediate);
      expect([emitted, worker.waiting]).toEqual([atPause, []]);
      worker.send({ type: 'credit', id: 7, bytes });
      bytes = 0;
    }
    expect(events).toBe(2000);
  });

  it('asks the server as part of itself', async () => {
    await using worker = await servedWorker(
      methods(async (_, { callServer }) => {
        const place = { thread_id: 't', checkpoint_ns: '' };
        const got = await callServer('checkpoint.get', place);
        const refused = await callServer('checkpoint.get', place).catch((error: unknown) => error);
        expect(refused).toMatchObject({ name: 'Refusal', code: 'not_found', message: 'no' });
        return { ...END, values: JSON.stringify(got) };
      }),
    );
    worker.send(CALL);
    expect(await worker.next()).toMatchObject({ type: 'call', id: 0, method: 'checkpoint.get', of: 7 });
    worker.send({ type: 'result', id: 0, value: null });
    expect(await worker.next()).toMatchObject({ type: 'call', id: 1, of: 7 });
    worker.send({ type: 'error', id: 1, error: { kind: 'refused', code: 'not_found', message: 'no' } });
    expect(await worker.next()).toMatchObject({ type: 'result', value: { values: 'null' } });
  });

  it('responds to pings meanwhile, and logs', async () => {
    await using worker = await servedWorker(
      methods((_, { log, signal }) => {
        log('warn', 'slow');
        return new Promise((_resolve, reject) => signal.addEventListener('abort', reject));
      }),
    );
    worker.send(CALL);
    expect(await worker.next()).toEqual({ type: 'log', level: 'warn', message: 'slow', of: 7 });
    worker.send({ type: 'ping', sequence: 3 });
    expect(await worker.next()).toEqual({ type: 'pong', sequence: 3 });
  });
});

it.each([
  ['the id of a call that runs', CALL, 'the id of a call that runs'],
  ['a result of no call', { type: 'result', id: 1, value: 1 }, 'a result of no call'],
  ['what only a worker sends', { type: 'pong', sequence: 1 }, 'a message pong from the server'],
  ['credit that was not used', { type: 'credit', id: 7, bytes: WINDOW_BYTES }, 'more credit than was used'],
])('%s ends the worker', async (_, message, error) => {
  await using worker = await servedWorker(methods(() => new Promise(() => undefined)));
  worker.send(CALL);
  worker.send(message);
  await expect(worker.ended).rejects.toThrow(error);
});
