// A real process under a flood: its origin, raw clients that send the flood, a bystander of node:http2 that keeps sending
// requests on its own connection, and the memory and records of the process.
import { existsSync } from 'node:fs';
import type { ClientHttp2Session } from 'node:http2';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openH2Tunnel } from '../support/h2-tunnel.ts';
import { type H2ClientOptions, H2WireClient } from '../support/h2-wire-client.ts';
import { type LogRecord, projectRoot, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { INJECTED, ORIGIN_NAME, createLoadOrigin } from './h2-load-origin.ts';
import { ask, calmRequest } from './h2-load-request.ts';
import { type ResidentSampler, sampleResident } from './resident-sampler.ts';

export type Bystander = {
  /** Ends it after its last response. */
  stop(): Promise<{ readonly latencies: readonly number[]; readonly errors: readonly string[] }>;
};

export type FloodScene = AsyncDisposable & {
  client(options?: H2ClientOptions): Promise<H2WireClient>;
  /** Sends requests one after the other, each after the response to the one before. */
  bystand(): Promise<Bystander>;
  recordsSoFar(): number;
  /** All records since the last call. */
  recordsSince(count: number): Promise<readonly LogRecord[]>;
  /** Resident memory after a garbage collection. */
  collectedBytes(): Promise<number>;
  sampleMemory(): ResidentSampler;
  isSameProcess(): boolean;
};

export async function createFloodScene(options: { readonly clientIdleMs: number }): Promise<FloodScene> {
  const trusted = createTestAuthority();
  const origin = await createLoadOrigin(trusted);
  const headers = [{ name: 'Authorization', type: 'plaintext', value: INJECTED }];
  const proxy = await spawnSallyport({
    proxyConfig: { rules: [{ name: 'load', match_hosts: [ORIGIN_NAME], headers }] },
    upstreamCaPem: trusted.certificatePem,
    preloads: [join(projectRoot, 'test', 'support', 'collect-on-signal.ts')],
    env: { SALLYPORT_TIMEOUTS_CLIENT_IDLE_MS: String(options.clientIdleMs) },
  });
  const { pid } = proxy.process;
  const authority = `${ORIGIN_NAME}:${origin.port}`;
  const ca = await readFile(proxy.caFile, 'utf8');
  let asked = 0;
  let collections = 0;

  const askOnce = (session: ClientHttp2Session): Promise<string | undefined> => {
    asked += 1;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    ask(session, calmRequest(asked), ({ error }) => resolve(error));
    return promise;
  };

  const bystand = async (): Promise<Bystander> => {
    const session = await openH2Tunnel({ proxyPort: proxy.port, authority, ca });
    await askOnce(session);
    const lost: string[] = [];
    session.on('error', (error: Error) => lost.push(error.message));
    const stopped = new AbortController();
    const run = async (): Promise<Awaited<ReturnType<Bystander['stop']>>> => {
      const latencies: number[] = [];
      const errors: string[] = [];
      do {
        const startedMs = performance.now();
        const error = await askOnce(session);
        latencies.push(performance.now() - startedMs);
        if (error !== undefined) errors.push(error);
      } while (!stopped.signal.aborted && errors.length === 0);
      session.destroy();
      return { latencies, errors: [...errors, ...lost] };
    };
    const running = run();
    return {
      stop() {
        stopped.abort();
        return running;
      },
    };
  };

  return {
    bystand,
    client: (clientOptions) =>
      H2WireClient.connectThrough(proxy.port, authority, { ca, name: ORIGIN_NAME }, clientOptions),
    recordsSoFar: () => proxy.process.records.length,
    async recordsSince(count) {
      const session = await openH2Tunnel({ proxyPort: proxy.port, authority, ca });
      await askOnce(session);
      session.destroy();
      // Records are written in order: earlier ones are there already.
      const last = `/n${asked}/`;
      await proxy.process.record(({ path }) => String(path).includes(last));
      return proxy.process.records.slice(count);
    },
    async collectedBytes() {
      collections += 1;
      const nth = collections;
      proxy.process.kill('SIGUSR2');
      await proxy.process.record((record) => record['msg'] === 'collected' && record['collections'] === nth);
      return proxy.process.usage().residentBytes;
    },
    sampleMemory: () => sampleResident(proxy.process),
    isSameProcess: () => proxy.process.pid === pid && existsSync(`/proc/${pid}/status`),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}
