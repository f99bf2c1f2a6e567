// grpc-js on both sides of the proxy: a server for good.test, which has a rule, and clients that find the proxy with their
// environment variable. The service has one method of each kind; a test provides the handlers. Messages are bytes, so that
// no compiler for .proto files is needed.
import { createSecureContext } from 'node:tls';
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import type { LogRecord } from '../support/spawned-process.ts';
import type { TestAuthority } from '../support/test-authority.ts';
import { createTestSidecar, type TestSidecar } from '../support/test-sidecar.ts';
import { SECRET } from './interop-scene.ts';

export type GrpcHandlers = {
  readonly unary: handleUnaryCall<Buffer, Buffer>;
  readonly serverStream: handleServerStreamingCall<Buffer, Buffer>;
  readonly clientStream: handleClientStreamingCall<Buffer, Buffer>;
  readonly bidi: handleBidiStreamingCall<Buffer, Buffer>;
};

export type GrpcServer = AsyncDisposable & {
  readonly port: number;
  readonly server: Server;
  /** The metadata of each call, in order. */
  readonly calls: readonly Metadata[];
};

export type GrpcProxy = AsyncDisposable & {
  readonly sidecar: TestSidecar;
  /** A client of HOST:PORT whose `grpc_proxy` is the proxy; closed with the scene. */
  client(target: string, options?: ChannelOptions & { readonly isClear?: boolean }): Client;
  /** Waits for the nth record of a target, counted from 0: a client may see the end of a call before it is recorded. */
  recordOf(target: string, index?: number): Promise<LogRecord>;
};

// grpc-js creates its TLS context from PEM.
const authority = createCertificateAuthority({ commonName: 'Test origins' });
const { chainPem, keyPem } = authority.issueLeaf({ host: 'good.test', kind: 'name' }, new Date());
const keyPair = { cert_chain: Buffer.from(chainPem), private_key: Buffer.from(keyPem) };
const context = createSecureContext({ cert: chainPem, key: keyPem });
/** The CA of the origins, for origins that are not gRPC servers. */
export const origins: TestAuthority = {
  certificatePem: authority.certificatePem,
  contextFor: () => context,
};

const proxyConfig = {
  rules: [
    {
      name: 'good',
      match_hosts: ['good.test'],
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
    },
  ],
};

const identity = (bytes: Buffer): Buffer => bytes;
const stubs = {
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
};
export const paths = {
  unary: '/test.Echo/Unary',
  serverStream: '/test.Echo/ServerStream',
  clientStream: '/test.Echo/ClientStream',
  bidi: '/test.Echo/Bidi',
} as const;
const service: ServiceDefinition = {
  unary: { path: paths.unary, requestStream: false, responseStream: false, ...stubs },
  serverStream: { path: paths.serverStream, requestStream: false, responseStream: true, ...stubs },
  clientStream: { path: paths.clientStream, requestStream: true, responseStream: false, ...stubs },
  bidi: { path: paths.bidi, requestStream: true, responseStream: true, ...stubs },
};

export async function createGrpcServer(
  handlers: Partial<GrpcHandlers> = {},
  options: ChannelOptions = {},
): Promise<GrpcServer> {
  const server = new Server(options);
  const calls: Metadata[] = [];
  const all = { ...echo, ...handlers };
  const noting =
    <C extends { readonly metadata: Metadata }, R extends readonly unknown[]>(
      handle: (call: C, ...rest: R) => void,
    ): ((call: C, ...rest: R) => void) =>
    (call, ...rest) => {
      calls.push(call.metadata.clone());
      handle(call, ...rest);
    };
  server.addService(service, {
    unary: noting(all.unary),
    serverStream: noting(all.serverStream),
    clientStream: noting(all.clientStream),
    bidi: noting(all.bidi),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createSsl(null, [keyPair]), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { port, server, calls, [Symbol.asyncDispose]: async () => server.forceShutdown() };
}

export async function createGrpcProxy(config: Readonly<Record<string, unknown>> = {}): Promise<GrpcProxy> {
  const sidecar = await createTestSidecar({
    proxyConfig,
    secrets: { TOKEN: SECRET },
    origins,
    config,
  });
  const clients: Client[] = [];
  return {
    sidecar,
    client(target, { isClear = false, ...options } = {}) {
      const trust = isClear
        ? credentials.createInsecure()
        : credentials.createSsl(Buffer.from(sidecar.caPem));
      const client = behindProxy(sidecar.port, target, trust, options);
      clients.push(client);
      return client;
    },
    async recordOf(target, index = 0) {
      for (let i = 0, seen = 0; ; i += 1) {
        const record = await sidecar.record(i);
        if (record['authority'] !== target) continue;
        if (seen === index) return record;
        seen += 1;
      }
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      await sidecar[Symbol.asyncDispose]();
    },
  };
}

/** grpc-js reads its variable when a channel is created. */
function behindProxy(
  port: number,
  target: string,
  trust: ChannelCredentials,
  options: ChannelOptions,
): Client {
  process.env['grpc_proxy'] = `http://127.0.0.1:${port}`;
  try {
    // Its own connection: otherwise the clients of one target share one.
    return new Client(target, trust, { 'grpc.use_local_subchannel_pool': 1, ...options });
  } finally {
    delete process.env['grpc_proxy'];
  }
}

const echo: GrpcHandlers = {
  unary: ({ request }, response) => response(null, request),
  serverStream(call) {
    for (const word of call.request.toString().split(' ')) call.write(Buffer.from(word));
    call.end();
  },
  clientStream(call, response) {
    const received: Buffer[] = [];
    call.on('data', (message: Buffer) => received.push(message));
    call.on('end', () => response(null, Buffer.from(received.join(' '))));
  },
  bidi(call) {
    call.on('data', (message: Buffer) => call.write(message));
    call.on('end', () => call.end());
  },
};
