// Graphs that take all they can get, on the program: runs of others end meanwhile, and the server says that it lives. How fast it says
// so is measured by `npm run bench -- agent --only hostile`.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { besideHostile, HOSTILITIES } from './hostile-load.ts';
import { HOSTILE } from './tenants-graphs.ts';
import { startTenants, type Tenants } from './tenants-scene.ts';

let tenants: Tenants;

beforeAll(async () => {
  tenants = await startTenants({
    graphs: { hostile: './hostile.ts:graph' },
    files: { 'hostile.ts': HOSTILE },
  });
}, 60_000);
afterAll(() => tenants?.[Symbol.asyncDispose]());

it.each(HOSTILITIES)(
  'others go on beside one that does %s',
  { tags: 'long', timeout: 180_000 },
  async (does) => {
    const { runs, failed, oks, hostile } = await besideHostile(tenants.url, does, does === 'loop' ? 45 : 10);
    expect(failed).toEqual([]);
    // One may have been on the worker that the loop holds up: it is executed elsewhere when that worker is ended.
    expect(runs.length).toBeGreaterThan(0);
    expect(oks.every(Number.isFinite)).toBe(true);
    if (does === 'emit') expect(hostile.megabytes).toBeGreaterThan(10);
  },
);

it('runs that end their workers every time end no others', { tags: 'long', timeout: 180_000 }, async () => {
  const start = async (user: string, does: string) => {
    const { body: thread } = await tenants.ask(user, 'POST', '/threads', { body: {} });
    const body = { assistant_id: 'hostile', input: { does } };
    const run = await tenants.ask(user, 'POST', `/threads/${thread.thread_id}/runs`, { body });
    expect(run.status).toBe(200);
    return { user, path: `/threads/${thread.thread_id}`, run: run.body.run_id };
  };
  const started: (Awaited<ReturnType<typeof start>> & { readonly does: string })[] = [];
  for (const [user, does] of [...Array(3).fill(['eve', 'crash']), ...Array(5).fill(['ada', 'sleep'])])
    started.push({ does, ...(await start(user, does)) });
  const statuses = async () =>
    Promise.all(
      started.map(async ({ user, does, path, run }) => {
        const { body } = await tenants.ask(user, 'GET', `${path}/runs/${run}`);
        return [does, body.status];
      }),
    );
  const wanted = started.map(({ does }) => [does, does === 'crash' ? 'error' : 'success']);
  await expect.poll(statuses, { timeout: 120_000, interval: 500 }).toEqual(wanted);
  const [{ user = '', path = '' } = {}] = started;
  const { body } = await tenants.ask(user, 'GET', path);
  expect(body.error).toMatchObject({
    error: 'RunLost',
    message: expect.stringMatching(/was ended by SIGSEGV$/),
  });
});
