import { describe, expect, it } from 'vitest';
import type { WireClient } from '../../support/wire-client.ts';
import { type DataPath, createDataPath, head } from '../data-path.ts';

const doors = {
  'in a tunnel': (path: DataPath) => path.tunnel(),
  'in the clear': (path: DataPath) => path.plain(),
};

/** A client whose request is with a host that never answers. */
async function waiting(path: DataPath, door: keyof typeof doors): Promise<WireClient> {
  const client = await doors[door](path);
  const target = door === 'in a tunnel' ? '/' : `http://${path.authority}/`;
  await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
  await path.origin.request(0);
  return client;
}

function createSilentPath(door: keyof typeof doors, drainMs: number): Promise<DataPath> {
  return createDataPath({
    // A credential would not leave over http://.
    ...(door === 'in the clear' ? { proxyConfig: {}, isClear: true } : {}),
    config: { timeouts: { drain_ms: drainMs } },
    respond: () => new Promise(() => {}),
  });
}

describe.each(Object.keys(doors) as (keyof typeof doors)[])('on the way down, %s', (door) => {
  it('an exchange that is cut at the deadline is recorded as our doing', async () => {
    await using path = await createSilentPath(door, 20);
    const client = await waiting(path, door);
    await path.proxy.sidecar.close();
    expect(path.proxy.records()).toMatchObject([{ outcome: 'failed', reason: 'shutting_down' }]);
    await client.finished;
  });

  it.each([
    ['ends', (client: WireClient) => client.end()],
    ['resets', (client: WireClient) => client.reset()],
  ])('an exchange whose client %s before the deadline is recorded as the client’s', async (_, leave) => {
    await using path = await createSilentPath(door, 10_000);
    const client = await waiting(path, door);
    const closing = path.proxy.sidecar.close();
    leave(client);
    await closing;
    expect(path.proxy.records()).toMatchObject([{ outcome: 'failed', reason: 'client_gone' }]);
  });
});
