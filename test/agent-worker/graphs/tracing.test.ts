// Traces and feedback of a run, with an account that is a server in this test: what is hidden does not get there.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createCall, loadTestGraphs, startRun } from '../../support/agent-runs.ts';

const SECRET = 'T0KEN-of-ann';
const bodies: string[] = [];
let onBody = (): void => {};
const account = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  if (request.method !== 'GET') bodies.push(`${request.url} ${Buffer.concat(parts).toString('latin1')}`);
  const isToken = request.url?.includes('/feedback/tokens') === true;
  const body = isToken ? { id: '1', url: 'http://feedback.test/1', expires_at: '2030-01-01T00:00:00Z' } : {};
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  onBody();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => account.listen(0, '127.0.0.1', resolve));
  vi.stubEnv('LANGSMITH_ENDPOINT', `http://127.0.0.1:${(account.address() as AddressInfo).port}`);
  vi.stubEnv('LANGSMITH_API_KEY', 'key');
  vi.stubEnv('LANGSMITH_DISABLE_RUN_COMPRESSION', 'true');
});
afterAll(() => {
  vi.unstubAllEnvs();
  account.close();
});

/** Resolves when what was sent has all of these. */
async function sent(...texts: readonly string[]): Promise<string> {
  for (;;) {
    const all = bodies.join('\n');
    if (texts.every((text) => all.includes(text))) return all;
    await new Promise<void>((resolve) => {
      onBody = resolve;
    });
  }
}

describe('a traced run', () => {
  it('tells the account of its nodes and its configurable, but nothing hidden', async () => {
    vi.stubEnv('LANGSMITH_TRACING', 'true');
    const methods = await loadTestGraphs('chat');
    const configurable = { place: 'right here', 'x-person': SECRET, langgraph_auth_user_id: SECRET };
    const hidden = ['x-person', 'langgraph_auth_user_id'];
    const input = { messages: [{ role: 'user', content: 'hi' }] };
    await startRun(methods, { graph_id: 'chat', input, config: { configurable }, hidden });
    const all = await sent('right here', 'WordsModel', 'one two three');
    expect(all).not.toContain(SECRET);
    vi.stubEnv('LANGSMITH_TRACING', 'false');
  });
});

describe('the keys for feedback', () => {
  it('become addresses, in the last event', async () => {
    const methods = await loadTestGraphs('builder');
    const run = { graph_id: 'builder', input: { steps: [] }, feedback_keys: ['helpful'] };
    const { events } = await startRun(methods, run);
    expect(events.at(-1)).toEqual({ event: 'feedback', data: { helpful: 'http://feedback.test/1' } });
    expect(await sent('helpful')).toContain('/feedback/tokens');
  });
});

describe('without a tracing account', () => {
  it('neither feedback keys nor a project of the client has anybody contacted', async () => {
    for (const name of Object.keys(process.env).filter((key) => /^LANG(SMITH|CHAIN)_/.test(key)))
      vi.stubEnv(name, undefined);
    const contacted: string[] = [];
    vi.stubGlobal('fetch', async (url: string | URL) => {
      contacted.push(String(url));
      return new Response('{"url":"http://other.test"}');
    });
    const methods = await loadTestGraphs('builder');
    const call = createCall();
    const logged: string[] = [];
    const context = {
      ...call.context,
      log: (level: string, message: string) => logged.push(`${level} ${message}`),
    };
    const configurable = { langsmith_project: 'mine' };
    const run = {
      graph_id: 'builder',
      input: { steps: [] },
      feedback_keys: ['helpful'],
      config: { configurable },
    };
    const { events, end } = await startRun(methods, run, { ...call, context });
    expect(end.status).toBe('success');
    expect(events.map(({ event }) => event)).not.toContain('feedback');
    expect(logged).toEqual([expect.stringMatching(/^warn run .* feedback_keys have no effect/)]);
    const client = await import('langsmith');
    await new client.Client().awaitPendingTraceBatches();
    expect(contacted).toEqual([]);
    vi.unstubAllGlobals();
  });
});
