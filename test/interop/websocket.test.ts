// A ws client through CONNECT and interception: the credential is in the upgrade, and after 101 the bytes pass.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { createScratch } from '../support/scratch.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { runClient } from './client-programs.ts';
import { INJECTED, SECRET } from './interop-scene.ts';

describe('ws', () => {
  const authority = createTestAuthority();
  const server = createServer({ SNICallback: (name, done) => done(null, authority.contextFor(name)) });
  const sockets = new WebSocketServer({ server });
  const upgrades: (readonly string[])[] = [];
  let sallyport: SpawnedSallyport;
  let port = 0;

  beforeAll(async () => {
    sockets.on('connection', (socket, { rawHeaders }) => {
      upgrades.push(rawHeaders);
      socket.on('message', (message, isBinary) => socket.send(message, { binary: isBinary }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
    await using scratch = await createScratch();
    const secrets = await scratch.write('secrets.env', `TOKEN=${SECRET}\n`);
    const value = 'Bearer {TOKEN}';
    const headers = [{ name: 'Authorization', type: 'workspace_secret', value }];
    sallyport = await spawnSallyport({
      proxyConfig: { rules: [{ name: 'good', match_hosts: ['good.test'], headers }] },
      upstreamCaPem: authority.certificatePem,
      args: ['--secrets-file', secrets],
    });
  });
  afterAll(async () => {
    await sallyport[Symbol.asyncDispose]();
    sockets.close();
    server.closeAllConnections();
    server.close();
  });

  it('speaks through an intercepted tunnel', async () => {
    const proxy = { url: `http://127.0.0.1:${sallyport.port}`, caFile: sallyport.caFile };
    const { code, stdout, stderr } = await runClient('ws', [`wss://good.test:${port}/socket`], proxy);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ code: 1000, first: 'one', bytes: 70_000 });
    expect(upgrades).toHaveLength(1);
    const at = upgrades[0]?.indexOf('Authorization') ?? -1;
    expect(upgrades[0]?.[at + 1]).toBe(INJECTED);
  });
});
