import { describe, expect, it } from 'vitest';
import type { WireClient } from '../../support/wire-client.ts';
import { type DataPath, createDataPath, head } from '../data-path.ts';

const entries = {
  'in a tunnel': (path: DataPath) => path.tunnel(),
  'in the clear': (path: DataPath) => path.plain(),
};

/** A client whose request waits for an upstream that never responds. */
async function waiting(path: DataPath, entry: keyof typeof entries): Promise<WireClient> {
  const client = await entries[entry](path);
  const target = entry === 'in a tunnel' ? '/' : `http://${path.authority}/`;
  await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
  await path.origin.request(0);
  return client;
}

function createSilentPath(entry: keyof typeof entries, drainMs: number): Promise<DataPath> {
  return createDataPath({
    // No credential is sent over http://.
    ...(entry === 'in the clear' ? { proxyConfig: {}, isClear: true } : {}),
    config: { timeouts: { drain_ms: drainMs } },
    respond: () => new Promise(() => {}),
  });
}

describe.each(Object.keys(entries) as (keyof typeof entries)[])('on the way down, %s', (entry) => {
  it('an exchange that is cut at the deadline is recorded with shutting_down', async () => {
    await using path = await createSilentPath(entry, 20);
    const client = await waiting(path, entry);
    await path.proxy.sidecar.close();
    expect(path.proxy.records()).toMatchObject([{ outcome: 'failed', reason: 'shutting_down' }]);
    await client.finished;
  });

  it.each([
    ['ends', (client: WireClient) => client.end()],
    ['resets', (client: WireClient) => client.reset()],
  ])('an exchange whose client %s before the deadline is recorded with client_gone', async (_, leave) => {
    await using path = await createSilentPath(entry, 10_000);
    const client = await waiting(path, entry);
    const closing = path.proxy.sidecar.close();
    leave(client);
    await closing;
    expect(path.proxy.records()).toMatchObject([{ outcome: 'failed', reason: 'client_gone' }]);
  });
});
