// A host that cannot be connected to: nothing listens, nothing responds, or the handshake is reset or stalls.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { SpawnedProcess } from '../support/spawned-process.ts';
import { fetchCodesTogether } from './proxy-request.ts';
import type { ChaosScene, SceneSettings } from './chaos-scene.ts';
import type { Fault } from './fault.ts';

/** More than the backlog of a relay that does not accept. */
const FILLING = 4;
/** Long enough for a responsive host on a busy machine. */
const SHORT: SceneSettings = { env: { SALLYPORT_TIMEOUTS_CONNECT_MS: '1000' } };

export const connectionFaults: readonly Fault[] = [
  { name: 'upstream: refuse', expects: '502 upstream_unreachable', arrange: arrangeRefuse },
  {
    name: 'upstream: blackhole',
    expects: '504 upstream_timeout',
    settings: SHORT,
    arrange: arrangeBlackhole,
  },
  {
    name: 'upstream: RST in handshake',
    expects: '502 upstream_unreachable',
    isAdded: true,
    arrange: (scene) =>
      arrangeGate(scene, (client) => void client.once('data', () => client.resetAndDestroy())),
  },
  {
    name: 'upstream: stall in handshake',
    expects: '504 upstream_timeout',
    settings: SHORT,
    isAdded: true,
    arrange: (scene) => arrangeGate(scene, (client) => void client.resume()),
  },
];

async function arrangeRefuse(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const gate = await createGate(scene.host.origin.port);
  const authority = `failing.test:${gate.port}`;
  return {
    authority,
    async inject() {
      await gate.close();
      return fetchCodesTogether(scene.sidecar, authority);
    },
    remove: () => gate.open(),
    close: () => gate.close(),
  };
}

async function arrangeGate(
  scene: ChaosScene,
  onConnection: (client: Socket) => void,
): ReturnType<Fault['arrange']> {
  await scene.start();
  const gate = await createGate(scene.host.origin.port);
  const authority = `failing.test:${gate.port}`;
  return {
    authority,
    inject() {
      gate.divert(onConnection);
      return fetchCodesTogether(scene.sidecar, authority);
    },
    remove: () => gate.divert(undefined),
    close: () => gate.close(),
  };
}

async function arrangeBlackhole(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const relay = new SpawnedProcess(process.execPath, [
    join(import.meta.dirname, 'relay-program.ts'),
    String(scene.host.origin.port),
  ]);
  const { port } = await relay.record((record) => 'port' in record);
  const authority = `failing.test:${String(port)}`;
  const filling: Socket[] = [];
  return {
    authority,
    async inject() {
      relay.kill('SIGSTOP');
      for (let i = 0; i < FILLING; i += 1)
        filling.push(connect(Number(port), '127.0.0.1').on('error', () => undefined));
      await once(filling[0] as Socket, 'connect');
      return fetchCodesTogether(scene.sidecar, authority);
    },
    remove() {
      relay.kill('SIGCONT');
      for (const socket of filling) socket.destroy();
    },
    close: () => relay[Symbol.asyncDispose](),
  };
}

type Gate = {
  readonly port: number;
  open(): Promise<void>;
  close(): Promise<void>;
  /** How new connections are handled; undefined: they reach the host. */
  divert(onConnection: ((client: Socket) => void) | undefined): void;
};

/** A relay to the host whose port can be closed and opened again. */
async function createGate(to: number): Promise<Gate> {
  const open = new Set<Socket>();
  let server: Server;
  let diverted: ((client: Socket) => void) | undefined;
  const onConnection = (client: Socket): void => {
    open.add(client);
    client.on('error', () => client.destroy()).on('close', () => open.delete(client));
    if (diverted) return diverted(client);
    const host = connect(to, '127.0.0.1');
    host.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => host.destroy());
    client.pipe(host).pipe(client);
  };
  const listen = async (port: number): Promise<number> => {
    server = createServer(onConnection).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  return {
    port,
    open: () => listen(port).then(() => undefined),
    async close() {
      if (!server.listening) return;
      const closed = once(server.close(), 'close');
      for (const socket of open) socket.destroy();
      await closed;
    },
    divert(next) {
      diverted = next;
      for (const socket of open) socket.destroy();
    },
  };
}
