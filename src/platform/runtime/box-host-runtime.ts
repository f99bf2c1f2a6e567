// The runtime of boxes by the box host of this machine. It keeps no state of its own: what runs is what the box host says.
import { setTimeout as delay } from 'node:timers/promises';
import { FramedSocket } from '../../base/http/framed-socket.ts';
import type { Log } from '../../base/log.ts';
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
import { type FailureNotes, createFailureNotes } from './failure-notes.ts';
import { type BoxRecords, type BoxSpec, type Runtime, RuntimeError } from './contract.ts';
import { createRuntimeSnapshots } from './runtime-snapshots.ts';

/** Before the box host is asked again that did not respond. */
const PAUSE_MS = 500;
const nothing = z.unknown();

/** Starts the box host if none runs. Rejects with a RuntimeError. */
export async function createBoxHostRuntime(
  program: BoxHostProgram,
  log: Pick<Log, 'warn' | 'info'> = silent,
): Promise<Runtime> {
  const failures = createFailureNotes(log);
  let starting: Promise<void> | undefined;
  // One start at a time, whoever waits for it.
  const ensure = (): Promise<void> =>
    (starting ??= ensureBoxHost(program).finally(() => (starting = undefined)));
  const host = new BoxHostConnection(program.directory, ensure);
  const { kind } = await settle(host, program.runtime);
  const wanted = program.runtime === 'auto' ? undefined : program.runtime;
  const closing = new AbortController();
  const spec = (box: BoxSpec): BoxSpec => ({ ...box, runtime: box.runtime ?? wanted });
  const path = (id: string): string => `/v1/boxes/${id}`;
  return {
    kind,
    snapshots: createRuntimeSnapshots(host),
    capabilities: async () =>
      required(await host.ask(hostStatus, { method: 'GET', path: '/v1/status' })).capabilities,
    start: async (box, policy) =>
      required(
        await host.ask(startedBox, {
          method: 'PUT',
          path: path(box.id),
          body: toStartDocument(spec(box), policy),
        }),
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
    connect: async (id, to) => {
      if (to === 'data-plane') return host.upgrade(`${path(id)}/data-plane`, 'sallyport-data-plane');
      return new FramedSocket(await host.upgrade(`${path(id)}/ports/${to.port}`, 'sallyport-port'));
    },
    readRecords: (onBatch, signal) =>
      readRecords({ host, failures }, onBatch, AbortSignal.any([signal, closing.signal])),
    close: async () => closing.abort(),
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new RuntimeError('unavailable', 'The box host responded with nothing');
  return value;
}

/** A box host that was started for another runtime is replaced, unless it has boxes: those go on. */
async function settle(
  host: BoxHostConnection,
  wanted: BoxHostProgram['runtime'],
): Promise<z.output<typeof hostStatus>> {
  for (;;) {
    const status = required(await host.ask(hostStatus, { method: 'GET', path: '/v1/status' }));
    if (wanted === undefined || status.configured === wanted) return status;
    try {
      await host.ask(nothing, { method: 'POST', path: '/v1/end' });
    } catch (error) {
      if (error instanceof RuntimeError && error.kind === 'failed') return status;
      throw error;
    }
    await delay(PAUSE_MS);
  }
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

type Reading = { readonly host: BoxHostConnection; readonly failures: FailureNotes };

async function readRecords(
  { host, failures }: Reading,
  onBatch: (batch: BoxRecords) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let acknowledged: { readonly source: string; readonly number: number } | undefined;
  while (!signal.aborted) {
    try {
      const ask = { method: 'POST', path: '/v1/records', body: { acknowledged }, signal };
      const batch = await host.ask(recordBatch, ask);
      acknowledged = undefined;
      failures.succeeded(READING);
      if (batch === undefined) continue;
      const { box_id: boxId, source, records } = batch;
      await storeBatch({ boxId, source, records }, onBatch, failures);
      acknowledged = { source, number: records.at(-1)?.number ?? 0 };
    } catch (error) {
      // Offered again: it was not acknowledged.
      if (!signal.aborted && !(error instanceof NotStored)) failures.failed(READING, error);
      await pause(signal);
    }
  }
}

const READING = 'the records of sandboxes could not be read; it is tried again';
const STORING = 'the records of sandboxes could not be stored; it is tried again';

class NotStored extends Error {}

async function storeBatch(
  batch: BoxRecords,
  onBatch: (batch: BoxRecords) => Promise<void>,
  failures: FailureNotes,
): Promise<void> {
  try {
    await onBatch(batch);
  } catch (error) {
    failures.failed(STORING, error);
    throw new NotStored();
  }
  failures.succeeded(STORING);
}

const silent = { warn: () => undefined, info: () => undefined };

async function pause(signal: AbortSignal): Promise<void> {
  await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
}
