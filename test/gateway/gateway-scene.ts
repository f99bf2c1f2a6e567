// A gateway on loopback with targets by host name, for tests.
import type { AddressInfo } from 'node:net';
import type { Log } from '../../src/base/log.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway/gateway.ts';
import type { GatewayRecord } from '../../src/gateway/record.ts';
import type { Target } from '../../src/gateway/target.ts';
import { WireClient } from '../support/wire-client.ts';

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

export type GatewayScene = AsyncDisposable & {
  readonly gateway: Gateway;
  readonly port: number;
  readonly records: readonly GatewayRecord[];
  /** The errors that were logged. */
  readonly errors: readonly unknown[];
  /** The nth record, counted from 0. */
  record(index: number): Promise<GatewayRecord>;
  connect(): Promise<WireClient>;
};

export type SceneOptions = Partial<Omit<GatewayOptions, 'onRecord' | 'log'>> & {
  readonly targets?: Readonly<Record<string, Target['address']>>;
};

/** Without `findTarget` the host names the target. */
export async function createGatewayScene(options: SceneOptions = {}): Promise<GatewayScene> {
  const { targets = {}, ...given } = options;
  const records: GatewayRecord[] = [];
  const errors: unknown[] = [];
  const waiting: { readonly index: number; resolve(record: GatewayRecord): void }[] = [];
  const gateway = createGateway({
    findTarget: ({ host }) => {
      const address = targets[host];
      return address && { name: host, address };
    },
    authorize: () => ({}),
    ...given,
    onRecord: (record) => {
      records.push(record);
      for (const waiter of waiting) if (waiter.index === records.length - 1) waiter.resolve(record);
    },
    log: { ...silentLog, error: (...about: unknown[]) => void errors.push(about) },
  });
  await new Promise<void>((done) => gateway.listener.listen(0, '127.0.0.1', () => done()));
  const { port } = gateway.listener.address() as AddressInfo;
  return {
    gateway,
    port,
    records,
    errors,
    record(index) {
      const there = records[index];
      if (there) return Promise.resolve(there);
      return new Promise((resolve) => waiting.push({ index, resolve }));
    },
    connect: () => WireClient.connect(port),
    [Symbol.asyncDispose]: () => gateway.close(0),
  };
}
