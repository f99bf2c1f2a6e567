// Snapshots of one machine, over the socket of its box host.
import { z } from '../../base/schema.ts';
import type { BoxHostConnection } from './box-host-connection.ts';
import type { RuntimeSnapshots } from './snapshot-contract.ts';

const imported = z.object({ bytes: z.int().min(0), entries: z.int().min(0) });
const listed = z.object({ snapshots: z.array(z.object({ id: z.string(), age_ms: z.number() })) });

export function createRuntimeSnapshots(host: BoxHostConnection): RuntimeSnapshots {
  const path = (id: string): string => `/v1/snapshots/${id}`;
  return {
    async importDirectory(id, { directory, within, maxBytes }, signal) {
      const body = { directory, within, max_bytes: maxBytes };
      return required(
        await host.ask(imported, { method: 'PUT', path: path(id), body, signal, timeoutMs: 0 }),
      );
    },
    async importArchive(id, archive, { maxBytes, signal }) {
      // Starts the box host where none runs: the bytes can be read once.
      await host.ask(z.unknown(), { method: 'GET', path: '/v1/status', signal });
      const ask = { method: 'PUT', path: `${path(id)}/archives/${maxBytes}`, signal, timeoutMs: 0 };
      return required(await host.upload(imported, ask, archive));
    },
    remove: async (id) => void (await host.ask(z.unknown(), { method: 'DELETE', path: path(id) })),
    async list() {
      const { snapshots } = required(await host.ask(listed, { method: 'GET', path: '/v1/snapshots' }));
      return snapshots.map(({ id, age_ms: ageMs }) => ({ id, ageMs }));
    },
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the box host sent a response without a body');
  return value;
}
