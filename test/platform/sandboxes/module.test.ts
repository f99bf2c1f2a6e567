import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createSandboxes } from '../../../src/platform/sandboxes/module.ts';
import { createPlatformApi } from '../../support/platform-api.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestConfig } from '../../support/test-wiring.ts';
import { BOXES } from './box-scene.ts';
import { createFakeRuntime } from './fake-runtime.ts';

it('an installation without a runtime says so, and lists no box', async () => {
  await using api = await createPlatformApi({ config: { sandboxes: { runtime: 'none' } } });
  const organizationId = await api.addOrganization();
  const key = await api.addServiceKey(
    organizationId,
    'WORKSPACE_ADMIN',
    await api.addWorkspace(organizationId),
  );
  const { status, body } = await api.ask('POST', BOXES, { key, body: {} });
  expect([status, body.detail.error]).toEqual([501, 'NotSupported']);
  expect(body.detail.message).toContain('sandboxes.runtime');
  expect((await api.ask('GET', BOXES, { key })).body.items).toEqual([]);
});

it('an installation without a box opens no runtime, although its gateway has named the machine', async () => {
  await using scratch = await createScratch();
  const settings = {
    data_dir: scratch.path,
    sandboxes: { runtime: 'bubblewrap' },
    gateway: { listen: '127.0.0.1:0' },
  };
  let opened = 0;
  const module = createSandboxes(async () => {
    opened += 1;
    return createFakeRuntime('bubblewrap');
  });
  await using api = await createPlatformApi({ modules: [module], config: settings });
  const { store } = api.database;
  const part = await module.start?.({
    ...{ config: createTestConfig(settings), store, vault: api.vault, program: [] },
    notifications: { subscribe: async () => () => undefined } as never,
    send: async () => undefined,
    log: createLog('silent', { write: () => undefined }),
    roles: { serves: true, works: true },
    signal: new AbortController().signal,
    admission: api.admission,
  });
  const machines = await store.db.selectFrom('box_machines').select(['runtime', 'gateway_url']).execute();
  expect(machines).toEqual([{ runtime: null, gateway_url: expect.stringMatching(/^http:/) }]);
  // It waits for what has looked for boxes.
  await part?.close();
  expect(opened).toBe(0);
});
