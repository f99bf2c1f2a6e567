// The listener: where it can be opened, what it counts, and how it ends.
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { gatewayLimits, openGatewayListener } from '../../../../src/platform/sandboxes/gateway/listener.ts';
import { createTestConfig } from '../../../support/test-wiring.ts';
import { createGatewayScene } from './gateway-scene.ts';

const log = createLog('silent', { write: () => undefined });

describe('the listener', () => {
  it('needs a public URL where clients cannot connect to its address', async () => {
    const config = createTestConfig({ gateway: { listen: '0.0.0.0:0' } });
    await expect(openGatewayListener({ config, places: [], log, meters: undefined })).rejects.toThrow(
      'gateway.public_url must be set',
    );
  });

  it('needs a public URL that is no host name of a service', async () => {
    const config = createTestConfig({
      gateway: { listen: '127.0.0.1:0', public_url: 'https://gw.boxes.test', domain: 'boxes.test' },
    });
    await expect(openGatewayListener({ config, places: [], log, meters: undefined })).rejects.toThrow(
      /gateway\.public_url .* outside of boxes\.test/,
    );
  });

  it('has no lower limit of requests that wait than of those that run, of which each organization has a part', () => {
    for (const connections of [10, 4_096, 100_000]) {
      const { gateway } = createTestConfig({ gateway: { connections } });
      expect(gatewayLimits(gateway)).toMatchObject({ maxConnections: connections, maxDeciding: connections });
    }
  });

  it('reports which setting to change where it cannot listen', async () => {
    const first = createTestConfig({ gateway: { listen: '127.0.0.1:0' } });
    const opened = await openGatewayListener({ config: first, places: [], log, meters: undefined });
    const config = createTestConfig({ gateway: { listen: new URL(opened.url).host } });
    await expect(openGatewayListener({ config, places: [], log, meters: undefined })).rejects.toThrow(
      /EADDRINUSE.*gateway\.listen/,
    );
    await opened.close();
  });

  it('counts by place, status and refusal, and never by what a client chose', async () => {
    const counts: string[] = [];
    let connections = (): number | Promise<number> => Number.NaN;
    const config = createTestConfig({
      gateway: { listen: '127.0.0.1:0', public_url: 'http://boxes.test:81/' },
    });
    const opened = await openGatewayListener({
      ...{ config, log },
      places: [{ name: 'a', find: ({ host }) => void (url ??= `http://${host}`) }],
      meters: {
        counter: () => (values) => void counts.push(JSON.stringify(values)),
        gauge: (_, __, read) => void (connections = read),
        seconds: () => () => undefined,
      },
    });
    let url: string | undefined;
    expect([opened.url, connections()]).toEqual(['http://boxes.test:81', 0]);
    await opened.close();
  });
});

describe('the end of the gateway', () => {
  it('asks clients of WebSockets to connect again, and refuses new requests', async () => {
    await using scene = await createGatewayScene();
    const box = await scene.create({});
    const opened = scene.nextSocket();
    const client = scene.dial(box.dataplane_url);
    await once(client, 'open');
    const inside = await opened;
    const codes = Promise.all([once(client, 'close'), once(inside, 'close')]);
    await scene.stopReconciling();
    expect((await codes).map(([code]) => code)).toEqual([1001, 1001]);
    await expect(scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' })).rejects.toThrow();
  });
});
