// The environment of a measured proxy: names and certificates, the origin, the callback endpoint, the credential.
// Independent of the proxy.
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import type { Children } from './children.ts';
import { PLACEHOLDER } from './heads.ts';
import type { OriginCommand, OriginCounts, OriginLeaf, OriginResponse } from './origin.ts';

export type Scene = AsyncDisposable & {
  readonly directory: string;
  readonly originPort: number;
  readonly caPem: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** The CA of the peers that intercept, which their clients trust. */
  readonly peerCa: { readonly pem: string; readonly certFile: string; readonly keyFile: string };
  /** The Authorization that a proxy injects. */
  readonly credential: string;
  readonly callbackUrl: string;
  /** Gives the origin certificates for more hosts. */
  addHosts(names: readonly string[]): Promise<void>;
  /** Starts the origin for bodies and streams, once; returns its port. */
  startBodyOrigin(): Promise<number>;
  /** The counts of the origin so far. */
  originCounts(): Promise<OriginCounts>;
  /** How often the callback endpoint was called. */
  callbackCalls(): number;
};

/** Names below localhost need no lookup; the proxy handles each in a different way. */
export const hosts = {
  rule: 'api.localhost',
  callback: 'minted.localhost',
  tunnel: 'plain.localhost',
} as const;
export const LOAD_CORE = 1;
export const PROXY_CORE = 0;

export async function createScene(children: Children, directory: string): Promise<Scene> {
  const ca = createCertificateAuthority();
  const peerCa = createCertificateAuthority({ commonName: 'CA of the peers' });
  const leafOf = (host: string): OriginLeaf => {
    const { chainPem, keyPem } = ca.issueLeaf({ host, kind: 'name' }, new Date());
    return { host, chainPem, keyPem };
  };
  const leaves = Object.values(hosts).map(leafOf);
  const credential = `Bearer ${randomBytes(24).toString('base64url')}`;
  const origin = children.start('origin', [process.execPath, join(import.meta.dirname, 'origin.ts')], {
    core: LOAD_CORE,
    output: 'ipc',
  });
  const ask = (command: OriginCommand): Promise<unknown> => origin.ask(command);
  const options = { leaves, injected: credential, untouched: PLACEHOLDER };
  const { port: originPort } = (await ask(options)) as OriginResponse;
  const endpoint = await createEndpoint(credential);
  let bodyPort: Promise<number> | undefined;
  const startBodyOrigin = async (): Promise<number> => {
    const program = join(import.meta.dirname, 'body-origin.ts');
    const child = children.start('body origin', [process.execPath, program], {
      core: LOAD_CORE,
      output: 'ipc',
    });
    return ((await child.ask(options)) as OriginResponse).port;
  };
  const write = async (name: string, content = ''): Promise<string> => {
    const file = join(directory, name);
    await writeFile(file, content, { mode: 0o644 });
    return file;
  };
  return {
    directory,
    originPort,
    caPem: ca.certificatePem,
    caFile: await write('ca.pem', ca.certificatePem),
    certFile: await write('leaf.pem', leaves[0]?.chainPem),
    keyFile: await write('leaf.key', leaves[0]?.keyPem),
    peerCa: {
      pem: peerCa.certificatePem,
      certFile: await write('peer-ca.pem', peerCa.certificatePem),
      keyFile: await write('peer-ca.key', peerCa.privateKeyPem),
    },
    credential,
    startBodyOrigin: () => (bodyPort ??= startBodyOrigin()),
    addHosts: async (names) => void (await ask({ add: names.map(leafOf) })),
    originCounts: async () => (await ask('count')) as OriginCounts,
    callbackUrl: endpoint.url,
    callbackCalls: endpoint.calls,
    [Symbol.asyncDispose]: endpoint.close,
  };
}

type Endpoint = { readonly url: string; calls(): number; close(): Promise<void> };

async function createEndpoint(credential: string): Promise<Endpoint> {
  let calls = 0;
  const server = createServer((request, response) => {
    calls += 1;
    request.resume().on('end', () => {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ headers: { Authorization: credential } }));
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/credentials`,
    calls: () => calls,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A port that was free a moment ago, for programs that cannot listen on port 0. */
export async function findFreePort(): Promise<number> {
  const server = createTcpServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  return port;
}

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Runs `use` with a file for appended output. */
export function withOutput<T>(file: string, use: (fd: number) => T): T {
  // Opened for appending, so that the file can be emptied while a process writes.
  const fd = openSync(file, 'a', 0o600);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
