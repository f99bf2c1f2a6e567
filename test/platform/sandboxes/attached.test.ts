// From the API through the box host and a real sidecar to a TLS origin: what a caller writes is what the origin sees.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BoxHostScene, createBoxHostScene, HOST } from '../../box-host/box-host-scene.ts';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';

let host: BoxHostScene;
let scene: BoxScene;
beforeAll(async () => {
  host = await createBoxHostScene();
  scene = await createBoxScene({}, host.runtime);
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});

const rules = (type: string, value: string) => ({
  rules: [{ match_hosts: [HOST], headers: [{ name: 'X-Key', type, value }] }],
});

describe('an attached box', () => {
  it('is created with its rules, changed, stopped, started and deleted', async () => {
    await scene.ask('POST', '/api/v1/workspaces/current/secrets', [
      { key: 'TOKEN', value: 'from-the-vault' },
    ]);
    const box = await scene.create({
      name: 'attached',
      proxy_config: rules('workspace_secret', 'Bearer {TOKEN}'),
    });
    const at = { proxyUrl: box.proxy_url, caPem: box.ca_pem };
    expect([box.status, new URL(box.proxy_url).hostname, box.ca_pem.startsWith('-----BEGIN')]).toEqual([
      'ready',
      '127.0.0.1',
      true,
    ]);
    expect(await host.keyAt(at)).toBe('Bearer from-the-vault');
    const changed = await scene.ask('PATCH', `${BOXES}/attached`, {
      proxy_config: rules('opaque', 'changed'),
    });
    expect([
      changed.status,
      changed.body.proxy_config_applied_version,
      changed.text.includes('changed'),
    ]).toEqual([200, 2, false]);
    expect(await host.keyAt(at)).toBe('changed');
    expect((await scene.ask('POST', `${BOXES}/attached/stop`, {})).status).toBe(204);
    await expect(host.keyAt(at)).rejects.toThrow(/ECONNREFUSED/);
    expect((await scene.ask('POST', `${BOXES}/attached/start`, {})).status).toBe(202);
    const { proxy_url: proxyUrl, ca_pem: caPem } = await scene.until(box.id, 'ready');
    const again = { proxyUrl: proxyUrl ?? '', caPem: caPem ?? '' };
    expect(await host.keyAt(again)).toBe('changed');
    expect((await scene.ask('DELETE', `${BOXES}/attached`)).status).toBe(204);
    await expect(host.keyAt(again)).rejects.toThrow(/ECONNREFUSED/);
    expect(await host.runtime.list()).toEqual([]);
  });

  it('whose rules the sidecar rejects at first sight is never ready with them', async () => {
    const { name, id } = await scene.create({ proxy_config: rules('opaque', 'first') });
    const refused = await scene.ask('PATCH', `${BOXES}/${name}`, {
      proxy_config: { rules: [{ match_hosts: ['*'] }] },
    });
    expect(refused.status).toBe(422);
    const row = await scene.row(id);
    expect(await host.keyAt({ proxyUrl: row?.proxy_url ?? '', caPem: row?.ca_pem ?? '' })).toBe('first');
  });
});
