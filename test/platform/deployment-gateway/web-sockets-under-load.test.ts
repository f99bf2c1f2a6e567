// Twenty WebSockets and requests at a constant rate through ten switches: each WebSocket is asked to connect again, between two messages
// and by nothing else, no message is lost before that, and no request fails.
import { EventEmitter, once } from 'node:events';
import { expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { createDeploymentScene, dial, type TestInstance } from './gateway-scene.ts';

const SWITCHES = 10;
const SOCKETS = 20;
/** Between two switches. */
const MESSAGES = 200;
const REQUESTS = 10;

it('are closed properly by each switch', { tags: 'long' }, async () => {
  await using scene = await createDeploymentScene();
  const deployment = scene.deployment();
  const address = scene.gateway.addressOf(deployment);
  const serve = async (): Promise<TestInstance> => {
    const instance = await scene.serve(deployment, { handle: (_, outgoing) => void outgoing.end('ok') });
    instance.sockets.on('connection', (socket: WebSocket) =>
      socket.on('message', (data) => socket.send(String(data))),
    );
    return instance;
  };
  const failures: string[] = [];
  const moments = new EventEmitter();
  const load = { isEnding: false };
  const codes: number[] = [];
  const talk = async (): Promise<void> => {
    const client = dial(address, '/ws', scene.key);
    const closed = once(client, 'close').then(([code]) => codes.push(Number(code)));
    const first = await Promise.race([once(client, 'open'), closed]);
    if (typeof first === 'number') return void failures.push('a WebSocket was not opened');
    let received = 0;
    client.on('message', (data) => {
      if (String(data) !== String(received)) failures.push(`${String(data)} came in place of ${received}`);
      received += 1;
      moments.emit('message');
      if (client.readyState === client.OPEN) client.send(String(received));
    });
    client.send('0');
    await closed;
    if (received === 0) failures.push('a WebSocket said nothing');
  };
  const keep = async (): Promise<void> => {
    while (!load.isEnding) await talk();
  };
  let old = await serve();
  const asking: Promise<void>[] = [];
  const timer = setInterval(() => {
    asking.push(
      scene.fetch(`${address}/`).then(
        ({ status }) => {
          if (status !== 200) failures.push(`a request: ${status}`);
          moments.emit('response');
        },
        (error: unknown) => {
          failures.push(`a request: ${String(error)}`);
          moments.emit('response');
        },
      ),
    );
  }, 10);
  const kept = Array.from({ length: SOCKETS }, keep);
  for (let i = 0; i < SWITCHES; i += 1) {
    while (old.sockets.clients.size < SOCKETS) await once(old.sockets, 'connection');
    for (let message = 0; message < MESSAGES; message += 1) await once(moments, 'message');
    for (let response = 0; response < REQUESTS; response += 1) await once(moments, 'response');
    load.isEnding = i === SWITCHES - 1;
    const next = await serve();
    await scene.gateway.targets.handedOver(old.id);
    await scene.gateway.targets.drained(old.id);
    expect(scene.gateway.targets.inFlight(old.id)).toBeUndefined();
    await old.end();
    old = next;
  }
  clearInterval(timer);
  await Promise.all([...kept, ...asking]);
  expect(failures).toEqual([]);
  expect(codes).toEqual(Array.from({ length: SWITCHES * SOCKETS }, () => 1001));
  expect(asking.length).toBeGreaterThanOrEqual(SWITCHES * REQUESTS);
});
