// The runtime of boxes by the box host of this machine. It keeps no state of its own: what runs is what the box host says.
import { setTimeout as delay } from 'node:timers/promises';
import { z } from '../../base/schema.ts';
import { BoxHostConnection } from './box-host-connection.ts';
import {
  appliedBox,
  boxList,
  hostStatus,
  recordBatch,
  startedBox,
  toPolicyDocument,
  toStartDocument,
} from './box-host-documents.ts';
import { type BoxHostProgram, ensureBoxHost } from './box-host-process.ts';
import { type BoxRecords, type Runtime, RuntimeError } from './contract.ts';

/** Before the box host is asked again that did not respond. */
const PAUSE_MS = 500;
const nothing = z.unknown();

/** Starts the box host if none runs. Rejects with a RuntimeError. */
export async function createBoxHostRuntime(program: BoxHostProgram): Promise<Runtime> {
  let starting: Promise<void> | undefined;
  // One start at a time, whoever waits for it.
  const ensure = (): Promise<void> =>
    (starting ??= ensureBoxHost(program).finally(() => (starting = undefined)));
  const host = new BoxHostConnection(program.directory, ensure);
  const { kind } = required(await host.ask(hostStatus, { method: 'GET', path: '/v1/status' }));
  const closing = new AbortController();
  const path = (id: string): string => `/v1/boxes/${id}`;
  return {
    kind,
    capabilities: async () =>
      required(await host.ask(hostStatus, { method: 'GET', path: '/v1/status' })).capabilities,
    start: async (box, policy) =>
      required(
        await host.ask(startedBox, { method: 'PUT', path: path(box.id), body: toStartDocument(box, policy) }),
      ),
    applyPolicy: async (id, policy) =>
      required(
        await host.ask(appliedBox, {
          method: 'PUT',
          path: `${path(id)}/policy`,
          body: toPolicyDocument(policy),
        }),
      ),
    stop: async (id) => void (await host.ask(nothing, { method: 'POST', path: `${path(id)}/stop` })),
    remove: async (id) => void (await host.ask(nothing, { method: 'DELETE', path: path(id) })),
    list: async () => required(await host.ask(boxList, { method: 'GET', path: '/v1/boxes' })),
    changes: (signal) => readChanges(host, AbortSignal.any([signal, closing.signal])),
    openAgent: (id) => host.upgrade(`${path(id)}/data-plane`),
    readRecords: (onBatch, signal) => readRecords(host, onBatch, AbortSignal.any([signal, closing.signal])),
    close: async () => closing.abort(),
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new RuntimeError('unavailable', 'The box host responded with nothing');
  return value;
}

/** A box host that started again has changed everything, so each connection yields too. */
async function* readChanges(
  host: BoxHostConnection,
  signal: AbortSignal,
): AsyncGenerator<void, void, undefined> {
  while (!signal.aborted) {
    try {
      const lines = await host.open({ method: 'GET', path: '/v1/changes', signal });
      // Nothing may change for hours.
      lines.socket.setTimeout(0);
      for await (const _ of lines) {
        if (signal.aborted) return;
        yield;
      }
    } catch {
      await pause(signal);
    }
  }
}

async function readRecords(
  host: BoxHostConnection,
  onBatch: (batch: BoxRecords) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let acknowledged: { readonly source: string; readonly number: number } | undefined;
  while (!signal.aborted) {
    try {
      const ask = { method: 'POST', path: '/v1/records', body: { acknowledged }, signal };
      const batch = await host.ask(recordBatch, ask);
      acknowledged = undefined;
      if (batch === undefined) continue;
      const { box_id: boxId, source, records } = batch;
      await onBatch({ boxId, source, records });
      acknowledged = { source, number: records.at(-1)?.number ?? 0 };
    } catch {
      // Offered again: it was not acknowledged.
      await pause(signal);
    }
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
}
