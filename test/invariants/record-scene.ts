// The scene of the I11 tests: the sandboxes `box` and `default`, each with rules and a revision of its own, and the records
// of both: one short line for each record, in order.
import type { LogRecord } from '../support/spawned-process.ts';
import { type MemoryStore, createMemoryStore } from '../sidecar/state/memory-store.ts';
import type { TestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import { type Scene, type SceneOptions, bearerRule, createScene } from './credential-scene.ts';

export const TOKEN = 'token-of-the-sandbox-box';
export const SHOWN: string = `Proxy-Authorization: Bearer ${TOKEN}`;
/** The revisions in force, different for each sandbox. */
export const REVISION: Readonly<Record<string, number>> = { default: 3, box: 1 };

/** The parts of a scene that concern the sandbox `box`. */
export type Box = {
  readonly store: MemoryStore;
  /** The port of the listener for box. */
  readonly boxPort: number;
  /** The header lines that identify a client of box. */
  readonly boxFields: readonly string[];
  /** A client of box that has sent nothing. */
  boxClient(): Promise<WireClient>;
  /** The records since the scene was created. */
  records(): readonly LogRecord[];
};
export type RecordScene = Scene & Box;

type Documented = Pick<SceneOptions, 'rules' | 'callbacks'> & { readonly hasOwnListener?: boolean };

export async function createRecordScene(
  options: SceneOptions & { readonly hasOwnListener?: boolean } = {},
): Promise<RecordScene> {
  const { hasOwnListener: _, ...rest } = options;
  const store = createMemoryStore();
  const scene = await createScene({ ...rest, sidecar: { admin: true, state: store } });
  return { ...scene, ...(await createBox(scene.proxy, store, options)) };
}

/** Creates the sandbox `box` in a sidecar with an admin API whose state is in `store`. */
export async function createBox(proxy: TestSidecar, store: MemoryStore, options: Documented): Promise<Box> {
  const { rules = [bearerRule('api.test')], callbacks = [], hasOwnListener = false } = options;
  const document = { rules, callbacks };
  for (let revision = proxy.sidecar.revision; revision < 3; revision += 1) proxy.apply(document);
  const made = await proxy.admin('POST', '/v1/sandboxes', {
    id: 'box',
    ...(hasOwnListener ? { listen: '127.0.0.1:0' } : { token: TOKEN }),
    workspace_secrets: { TOKEN: 'another-secret-of-box' },
    proxy_config: document,
  });
  if (made.status !== 201) throw new Error(`box: ${made.text}`);
  const boxPort = Number(new URL(String(made.body['proxy'])).port);
  const before = proxy.lines.length;
  return {
    store,
    boxPort,
    boxFields: hasOwnListener ? [] : [SHOWN],
    boxClient: () => WireClient.connect(boxPort),
    records: () => proxy.lines.slice(before).filter(isRecord),
  };
}

/** The record of an exchange or of a write via the admin API; what the test applies directly counts as the operator's. */
export function isRecord({ msg, by }: LogRecord): boolean {
  return (msg === 'exchange' || msg === 'admin') && by !== 'operator';
}

/** A record in short: sandbox, revision, outcome, status and reason. */
export function shortly(record: LogRecord): string {
  const { msg, sandbox = '-', revision = '-', outcome, status = '-', reason = '-', action = '' } = record;
  const what = msg === 'admin' ? `admin ${String(action)}` : 'exchange';
  return [what, sandbox, revision, outcome, status, reason].map(String).join(' ');
}
