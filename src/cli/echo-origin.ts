// A local TLS origin and a callback endpoint for `start` and `demo`: they show an injected header without the internet.
// The origin has its own CA, in memory; the proxy trusts it by the setting that an operator would use.
import { type IncomingMessage, type ServerResponse, createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { InputError } from '../base/input-error.ts';
import { createCertificateAuthority } from '../tls/certificate-authority.ts';
import { createLeafCache } from '../tls/leaf-cache.ts';
import { codeOf } from '../tls/pem-files.ts';

export type SeenRequest = {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
};

export type LocalOrigin = AsyncDisposable & {
  readonly port: number;
  readonly caPem: string;
  readonly seen: readonly SeenRequest[];
};

const HOST = '127.0.0.1';

/** Accepts any host name on 127.0.0.1. `echo`: the response shows the request, credentials included. */
export async function createEchoOrigin(options: { port: number; echo: boolean }): Promise<LocalOrigin> {
  const ca = createCertificateAuthority({ commonName: 'Local echo origin' });
  const leaves = createLeafCache(ca);
  const fallback = ca.issueLeaf({ host: 'localhost', kind: 'name' }, new Date());
  const seen: SeenRequest[] = [];
  const server = createServer(
    {
      cert: fallback.chainPem,
      key: fallback.keyPem,
      SNICallback: (name, found) => found(null, leaves.contextFor({ host: name, kind: 'name' })),
    },
    (request, response) => {
      const one = seenRequest(request);
      seen.push(one);
      if (seen.length > 1_000) seen.shift();
      request.resume();
      request.on('end', () => respond(response, options.echo ? one : { ok: true }));
    },
  );
  await listen(server, options.port);
  return {
    port: (server.address() as AddressInfo).port,
    caPem: ca.certificatePem,
    seen,
    [Symbol.asyncDispose]: () => close(server),
  };
}

export type LocalCallback = AsyncDisposable & { readonly url: string; readonly calls: number };

/** A callback endpoint that responds with `headers`, or with 500 where `headers` returns undefined. */
export async function createCallbackEndpoint(options: {
  port: number;
  headers: (host: string) => Readonly<Record<string, string>> | undefined;
}): Promise<LocalCallback> {
  let calls = 0;
  const server = createHttpServer((request, response) => {
    calls += 1;
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const headers = options.headers((JSON.parse(text) as { host: string }).host);
      response.statusCode = headers ? 200 : 500;
      respond(response, headers ? { headers } : { error: 'no credentials for this host' });
    });
  });
  await listen(server, options.port);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST}:${port}/credentials`,
    get calls() {
      return calls;
    },
    [Symbol.asyncDispose]: () => close(server),
  };
}

function seenRequest(request: IncomingMessage): SeenRequest {
  const { rawHeaders, headers, method = '', url = '' } = request;
  const pairs: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '']);
  return { host: headers.host ?? '', method, path: url, headers: pairs };
}

function respond(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json');
  response.end(`${JSON.stringify(value, null, 2)}\n`);
}

async function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(port, HOST, resolve);
  await promise.catch((cause: unknown) => {
    const hint = codeOf(cause) === 'EADDRINUSE' ? ': stop the process that uses it' : '';
    throw new InputError(`cannot listen on ${HOST}:${port} (${codeOf(cause)})${hint}`, { cause });
  });
}

async function close(server: Server & { closeAllConnections?(): void }): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections?.();
  await closed;
}
