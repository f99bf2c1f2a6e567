import { expect, it } from 'vitest';
import { createPlatformApi } from '../../support/platform-api.ts';
import { BOXES } from './box-scene.ts';

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
