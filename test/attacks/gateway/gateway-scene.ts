// A gateway in front of the origin of the `message` rows.
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createGateway } from '../../../src/gateway/gateway.ts';
import type { GatewayRecord } from '../../../src/gateway/record.ts';
import type { TargetAddress } from '../../../src/gateway/target.ts';
import { publicAuthority } from '../../invariants/credential-scene.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { MessageTarget } from '../message/message-driver.ts';
import { createMessageOrigins } from '../message/message-origins.ts';
import { silentLog } from '../../gateway/gateway-scene.ts';
import { WrappedSocket } from '../../gateway/wrapped-socket.ts';

export type RowScene = AsyncDisposable & {
  readonly target: MessageTarget;
  readonly records: readonly GatewayRecord[];
};

const PATIENCE_MS = 10_000;

/** How the gateway reaches the origin: by its address, or through a stream that its owner opens for each request. */
export type Reached = 'address' | 'stream';

export async function createRowScene(reached: Reached): Promise<RowScene> {
  const origins = await createMessageOrigins(publicAuthority);
  const { port } = origins.own.plain;
  const records: GatewayRecord[] = [];
  const gateway = createGateway({
    findTarget: ({ host }) =>
      host === `api.test:${port}` ? { name: 'origin', address: addresses(port)[reached] } : undefined,
    authorize: () => ({}),
    onRecord: (record) => records.push(record),
    log: silentLog,
  });
  await new Promise<void>((done) => gateway.listener.listen(0, '127.0.0.1', () => done()));
  const { port: gatewayPort } = gateway.listener.address() as AddressInfo;
  return {
    records,
    target: {
      open: () => WireClient.connect(gatewayPort),
      origins: origins.all,
      values: () => valuesOf(port),
      patienceMs: PATIENCE_MS,
      ends: true,
    },
    async [Symbol.asyncDispose]() {
      await gateway.close(0);
      await origins[Symbol.asyncDispose]();
    },
  };
}

/** The values of the placeholders in origin-form. */
export function valuesOf(port: number): Readonly<Record<string, string>> {
  return { AT: '', HOST: `api.test:${port}`, PORT: String(port), EVIL: 'evil.test:1', EVIL_PORT: '1' };
}

function addresses(port: number): Readonly<Record<Reached, TargetAddress>> {
  const address = { host: '127.0.0.1', port };
  const connectTo = async (): Promise<WrappedSocket> => {
    const socket = connect({ ...address, allowHalfOpen: true });
    await once(socket, 'connect');
    return new WrappedSocket(socket);
  };
  return { address, stream: { connect: connectTo } };
}
