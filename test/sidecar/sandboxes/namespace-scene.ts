// A sidecar that takes listeners of its parent (here the test), network namespaces of boxes, and an origin on the loopback of
// the machine. What a test reads is what a client in a namespace gets.
import { randomBytes } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import { join } from 'node:path';
import {
  type NamespaceListener,
  openNamespaceListener,
} from '../../../src/box-host/listeners/namespace-listener.ts';
import { type NetworkNamespace, createNetworkNamespace } from '../../support/network-namespace.ts';
import { createOrigin, type RecordingOrigin } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import type { Finished } from '../../support/spawned-process.ts';
import { createTestAuthority, type TestAuthority } from '../../support/test-authority.ts';
import { type TestSidecar, type TestSidecarOptions, createTestSidecar } from '../../support/test-sidecar.ts';

const origins: TestAuthority = createTestAuthority();
export const BOX_LISTENER = { host: '127.0.0.1', port: 3128 } as const;

export type Reply = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

export type NamespaceScene = AsyncDisposable & {
  readonly origin: RecordingOrigin;
  readonly sidecar: TestSidecar;
  /** Ends the sidecar and starts another with the same state. */
  restart(): Promise<void>;
  ask(method: string, path: string, body?: unknown): Promise<Reply>;
  /** A namespace with a listener that was opened and not yet handed over. */
  openBox(): Promise<Box>;
  /** Hands a handle over for the sandbox and returns its reference. */
  handOver(handle: unknown, sandbox: string): string;
  /** A namespace whose listener a new sandbox of this id serves. */
  createBox(id: string, document?: object): Promise<Box>;
};

export type Box = {
  readonly space: NetworkNamespace;
  readonly listener: NamespaceListener;
  /** curl inside, through the listener. */
  curl(...args: readonly string[]): Promise<Finished>;
};

export async function createNamespaceScene(
  options: Pick<TestSidecarOptions, 'config' | 'names' | 'openFiles'> = {},
): Promise<NamespaceScene> {
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
  const socketPath = join(scratch.path, 'admin.sock');
  const start = (): Promise<TestSidecar> =>
    createTestSidecar({
      admin: true,
      state: scratch.path,
      origins,
      ...options,
      config: {
        sandboxes: { namespaces: true },
        admin: { listen: `unix:${socketPath}` },
        ...options.config,
      },
    });
  let sidecar = await start();
  const ca = await scratch.write('ca.pem', sidecar.caPem);
  const boxes: Box[] = [];

  async function ask(method: string, path: string, body?: unknown): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const headers = {
      Host: 'localhost',
      Authorization: `Bearer ${sidecar.adminToken}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    };
    const asked = requestHttp({ socketPath, method, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text === '' ? {} : JSON.parse(text) }),
      );
    });
    asked.on('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  async function openBox(): Promise<Box> {
    const space = await createNetworkNamespace();
    const listener = await openNamespaceListener(space, BOX_LISTENER);
    const curl = (...args: readonly string[]): Promise<Finished> =>
      space.run('curl', ['-sS', '--max-time', '30', '-x', 'http://127.0.0.1:3128', '--cacert', ca, ...args]);
    const box = { space, listener, curl };
    boxes.push(box);
    return box;
  }

  function handOver(handle: unknown, sandbox: string): string {
    const reference = randomBytes(16).toString('base64url');
    sidecar.sidecar.handOver({ type: 'listener', reference, sandbox }, handle);
    return reference;
  }

  return {
    origin,
    get sidecar() {
      return sidecar;
    },
    ask,
    openBox,
    handOver,
    async restart() {
      await sidecar[Symbol.asyncDispose]();
      sidecar = await start();
    },
    async createBox(id, document = {}) {
      const box = await openBox();
      const reference = handOver(box.listener.handle, id);
      const made = await ask('POST', '/v1/sandboxes', {
        id,
        listen: { handed_over: reference },
        ...document,
      });
      if (made.status !== 201)
        throw new Error(`the response was ${made.status} ${JSON.stringify(made.body)}`);
      return box;
    },
    async [Symbol.asyncDispose]() {
      for (const { space } of boxes) await space[Symbol.asyncDispose]();
      await sidecar[Symbol.asyncDispose]();
      await origin.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
