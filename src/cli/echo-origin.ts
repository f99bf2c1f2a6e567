// A local TLS origin and a callback endpoint for `start` and `demo`: they show an injected header without the internet.
// The origin has its own CA, in memory; the proxy trusts it by the setting that an operator would use.
import { once } from 'node:events';
import {
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { InputError } from '../base/input-error.ts';
import { isObject, parseJsonDocument } from '../base/json/json-document.ts';
import { createCertificateAuthority } from '../tls/certificate-authority.ts';
import { createLeafCache } from '../tls/leaf-cache.ts';
import { codeOf } from '../tls/pem-files.ts';

export type SeenRequest = {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
};

type Listening = AsyncDisposable & { readonly port: number };

export type LocalOrigin = Listening & {
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
  return { ...(await listen(server, options.port)), caPem: ca.certificatePem, seen };
}

export type LocalCallback = AsyncDisposable & { readonly url: string; readonly calls: number };

/**
 * A callback endpoint that responds with `headers`, with 500 where `headers` returns undefined, and with 400 to what is no
 * request of the proxy: any program of this machine can reach it.
 */
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
      const host = hostIn(text);
      const headers = host === undefined ? undefined : options.headers(host);
      response.statusCode = headers ? 200 : host === undefined ? 400 : 500;
      respond(response, headers ? { headers } : { error: 'no credentials for this host' });
    });
  });
  const listening = await listen(server, options.port);
  return {
    ...listening,
    url: `http://${HOST}:${listening.port}/credentials`,
    get calls() {
      return calls;
    },
  };
}

/** The host that the credentials are for, in the body of a callback. */
function hostIn(text: string): string | undefined {
  const reading = parseJsonDocument(text);
  const host = reading.ok && isObject(reading.value) ? reading.value['host'] : undefined;
  return typeof host === 'string' ? host : undefined;
}

function seenRequest({ rawHeaders, headers, method = '', url = '' }: IncomingMessage): SeenRequest {
  const pairs = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : [],
  );
  return { host: headers.host ?? '', method, path: url, headers: pairs };
}

function respond(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json');
  response.end(`${JSON.stringify(value, null, 2)}\n`);
}

async function listen(server: HttpServer, port: number): Promise<Listening> {
  server.listen(port, HOST);
  await once(server, 'listening').catch((cause: unknown) => {
    const hint =
      codeOf(cause) === 'EADDRINUSE'
        ? ': stop the process that uses it, or choose other ports with --origin-port and --callback-port'
        : '';
    throw new InputError(`cannot listen on ${HOST}:${port} (${codeOf(cause)})${hint}`, { cause });
  });
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}
