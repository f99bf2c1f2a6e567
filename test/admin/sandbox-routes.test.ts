import { describe, expect, it } from 'vitest';
import type { Secret } from '../../src/base/secret.ts';
import { createAdminScene, field, SANDBOX, WARNING } from './admin-scene.ts';

const inBody = (...loc: readonly string[]): unknown => ({ ...WARNING, loc: [...loc, ...WARNING.loc] });

describe('workspace secrets', () => {
  it.each(['PUT', 'POST'])('are merged by %s, and null deletes', async (method) => {
    await using scene = await createAdminScene();
    for (const path of ['/v1/workspace_secrets', '/v1/sandboxes/default/workspace_secrets'])
      for (const body of [
        { A: 'value-a', B: null },
        [
          { key: 'A', value: 'value-a' },
          { key: 'B', value: null },
        ],
      ]) {
        const response = await scene.ask(method, path, { body });
        expect(JSON.parse(response.text)).toEqual({
          workspace_secrets: [{ key: 'A' }, { key: 'B' }, { key: 'C' }],
          warnings: [inBody('body')],
        });
        const changes = scene.calls.at(-1)?.given[0] as ReadonlyMap<string, Secret | null>;
        expect([...changes.keys(), changes.get('B')]).toEqual(['A', 'B', null]);
        expect(changes.get('A')?.equals('value-a')).toBe(true);
      }
  });

  it('are listed by name', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/v1/sandboxes/default/workspace_secrets');
    expect(JSON.parse(response.text)).toEqual({ workspace_secrets: [{ key: 'A' }, { key: 'B' }] });
  });
});

describe('sandboxes', () => {
  it('are listed, shown, created, changed and removed', async () => {
    await using scene = await createAdminScene();
    expect(JSON.parse((await scene.ask('GET', '/v1/sandboxes')).text)).toEqual({ sandboxes: [SANDBOX] });
    expect(JSON.parse((await scene.ask('GET', '/v1/sandboxes/default')).text)).toEqual(SANDBOX);
    const made = await scene.ask('POST', '/v1/sandboxes', { body: { id: 'box-1' } });
    expect([made.head.status, field(made, 'location')]).toEqual([201, '/v1/sandboxes/box-1']);
    expect(JSON.parse(made.text)).toMatchObject({
      id: 'box-1',
      token: 'shown-once',
      warnings: [inBody('body')],
    });
    const changed = await scene.ask('PATCH', '/v1/sandboxes/default', { body: { limits: {} } });
    expect([changed.head.status, JSON.parse(changed.text)]).toEqual([200, SANDBOX]);
    const removed = await scene.ask('DELETE', '/v1/sandboxes/default');
    expect([removed.head.status, removed.text]).toEqual([204, '']);
    expect(scene.calls.map(({ name, given }) => [name, ...given])).toEqual([
      ['createSandbox', { id: 'box-1' }],
      ['changeSandbox', { limits: {} }],
      ['removeSandbox'],
    ]);
  });

  it.each([
    ['GET', '/v1/sandboxes/other'],
    ['GET', '/v1/sandboxes/other/proxy_config'],
    ['GET', '/v1/sandboxes/other/workspace_secrets'],
    ['PUT', '/v1/sandboxes/other/proxy_config'],
    ['PUT', '/v1/sandboxes/other/workspace_secrets'],
    ['PATCH', '/v1/sandboxes/other'],
    ['DELETE', '/v1/sandboxes/other'],
    ['GET', '/v1/sandboxes/-x'],
    ['GET', '/v1/sandboxes/x-'],
    ['GET', '/v1/sandboxes/Default'],
    ['GET', '/v1/sandboxes/defa%75lt'],
    ['GET', `/v1/sandboxes/${'x'.repeat(64)}`],
    ['GET', '/v1/sandboxes/./default'],
    ['GET', '/v1/sandboxes/x/../default'],
    ['GET', '//v1/proxy_config'],
    ['GET', '/v1/proxy_config/'],
    ['GET', '/V1/proxy_config'],
    ['GET', '/v1\\proxy_config'],
    ['PUT', '/v1/nothing'],
  ])('or paths that do not exist are a 404: %s %s', async (method, path) => {
    await using scene = await createAdminScene();
    const body = method === 'PUT' || method === 'PATCH' ? {} : undefined;
    const response = await scene.ask(method, path, { body });
    expect(response.head.status).toBe(404);
    expect(typeof JSON.parse(response.text).detail).toBe('string');
  });
});
