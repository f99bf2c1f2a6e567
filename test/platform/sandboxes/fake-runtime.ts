// A runtime without processes, for the tests of what drives it: it can fail, hang, die, lose its policies, and run boxes that nobody
// knows.
import type { Duplex } from 'node:stream';
import {
  type BoxPolicy,
  type BoxRecords,
  type BoxReport,
  type BoxSpec,
  type Capability,
  type Runtime,
  RuntimeError,
  type RuntimeKind,
  type RuntimeErrorKind,
} from '../../../src/platform/runtime/contract.ts';

type Call = { readonly call: string; readonly id: string; readonly version?: number };
type Running = {
  state: BoxReport['state'];
  version: number;
  reason?: string;
  spec?: BoxSpec;
  policy?: BoxPolicy;
};

export type FakeRuntime = Runtime & {
  /** Every call that was begun, in order. */
  readonly calls: readonly Call[];
  readonly boxes: ReadonlyMap<string, Running>;
  /** Of snapshots. */
  readonly files: Map<string, { bytes: number; ageMs: number }>;
  /** Decides what becomes of a call; undefined: it is done. */
  onCall: (call: Call) => Promise<void> | void;
  /** What it says about storage. */
  storage: Capability;
  /** Whether clients must send a token. */
  needsToken: boolean;
  /** What it says of each box that it starts. */
  statusMessage: string | undefined;
  /** The box ended by itself. */
  kill(id: string, reason?: string): void;
  /** The sidecars started again: no listener, no policy. */
  losePolicies(): void;
  /** The host died: nothing runs. */
  die(): void;
  /** As an earlier version of the rules, or as if nobody had asked for it. */
  pretend(id: string, version: number): void;
  /** As new, but for whoever follows it. */
  reset(): void;
  /** Hands a batch to whoever reads records; resolves when it is acknowledged. */
  offer(batch: BoxRecords): Promise<void>;
};

export function createFakeRuntime(kind: RuntimeKind = 'attached'): FakeRuntime {
  const boxes = new Map<string, Running>();
  const calls: Call[] = [];
  const files = new Map<string, { bytes: number; ageMs: number }>();
  const snapshots: Runtime['snapshots'] = {
    async importDirectory(id, { maxBytes }) {
      await begin({ call: 'importDirectory', id, version: maxBytes });
      files.set(id, { bytes: 5, ageMs: 0 });
      return { bytes: 5, entries: 1 };
    },
    async importArchive(id, archive, { maxBytes }) {
      await begin({ call: 'importArchive', id, version: maxBytes });
      let bytes = 0;
      for await (const piece of archive) bytes += piece.length;
      files.set(id, { bytes, ageMs: 0 });
      return { bytes, entries: 1 };
    },
    async remove(id) {
      files.delete(id);
      change();
    },
    list: async () => [...files].map(([id, { ageMs }]) => ({ id, ageMs })),
  };
  let changed = Promise.withResolvers<void>();
  let reading = Promise.withResolvers<(batch: BoxRecords) => Promise<void>>();
  const change = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const begin = async (call: Call): Promise<void> => {
    calls.push(call);
    await runtime.onCall(call);
  };
  const runtime: FakeRuntime = {
    kind,
    storage: kind === 'attached' ? { isHeld: false, reason: 'a fake' } : { isHeld: true },
    calls,
    boxes,
    snapshots,
    files,
    onCall: () => undefined,
    needsToken: false,
    statusMessage: undefined,
    async capabilities() {
      const none = { isHeld: false, reason: 'a fake' } as const;
      return { version: undefined, isolation: none, limits: none, storage: runtime.storage, agent: none };
    },
    async start(spec, policy) {
      await begin({ call: 'start', id: spec.id, version: policy.version });
      const version = Math.max(policy.version, boxes.get(spec.id)?.version ?? 0);
      boxes.set(spec.id, { state: 'running', version, spec, policy });
      return {
        runtime: runtime.kind,
        proxyUrl: 'http://127.0.0.1:41234',
        caPem: 'a certificate',
        needsProxyToken: runtime.needsToken,
        ...messageOf(runtime),
        appliedVersion: version,
      };
    },
    async applyPolicy(id, policy) {
      await begin({ call: 'apply', id, version: policy.version });
      const box = boxes.get(id);
      if (box?.state !== 'running') throw new RuntimeError('failed', 'It does not run');
      if (policy.version > box.version) Object.assign(box, { version: policy.version, policy });
      return { ...messageOf(runtime), appliedVersion: box.version };
    },
    async stop(id) {
      await begin({ call: 'stop', id });
      const box = boxes.get(id);
      if (box !== undefined) Object.assign(box, { state: 'stopped', version: 0 });
    },
    async remove(id) {
      await begin({ call: 'remove', id });
      boxes.delete(id);
    },
    async list() {
      await begin({ call: 'list', id: '' });
      return [...boxes].map(([id, { state, version, reason }]) => ({
        ...{ id, state, appliedVersion: version },
        ...(reason === undefined ? {} : { reason }),
      }));
    },
    async *changes(signal) {
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      while (!signal.aborted) {
        await Promise.race([changed.promise, aborted]);
        if (!signal.aborted) yield;
      }
    },
    async connect(): Promise<Duplex> {
      throw new RuntimeError('not_supported', 'A fake has no agent');
    },
    async readRecords(onBatch, signal) {
      reading.resolve(onBatch);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    },
    close: async () => undefined,
    kill(id, reason) {
      const box = boxes.get(id);
      if (box !== undefined) Object.assign(box, { state: 'failed', version: 0, reason });
      change();
    },
    losePolicies() {
      for (const box of boxes.values()) box.version = 0;
      change();
    },
    die() {
      boxes.clear();
      change();
    },
    pretend(id, version) {
      boxes.set(id, { state: 'running', version });
      change();
    },
    reset() {
      boxes.clear();
      calls.length = 0;
      reading = Promise.withResolvers();
      Object.assign(runtime, { onCall: () => undefined, needsToken: false, statusMessage: undefined });
    },
    offer: async (batch) => (await reading.promise)(batch),
  };
  return runtime;
}

function messageOf({ statusMessage }: FakeRuntime) {
  return statusMessage === undefined ? {} : { statusMessage };
}

export function rejects(kind: RuntimeErrorKind, message: string): () => Promise<never> {
  return async () => {
    throw new RuntimeError(kind, message);
  };
}
