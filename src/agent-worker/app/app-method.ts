// The application of a deployment: any value with `fetch`, as Hono exports it, or a function of that shape. Requests and
// responses stream in both directions.
import { pathToFileURL } from 'node:url';
import type { AppRequest, AppResponse } from '../protocol/calls.ts';
import { LoadError } from '../method.ts';
import type { ModuleExport } from '../protocol/messages.ts';

export type AppContext = {
  readonly signal: AbortSignal;
  /** Undefined where the request has none. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
};

export type AppResult = {
  readonly response: AppResponse;
  readonly body: ReadableStream<Uint8Array> | null;
};

export type AppMethod = (request: AppRequest, context: AppContext) => Promise<AppResult>;

type Fetch = (request: Request) => Response | Promise<Response>;

/** Throws a LoadError. */
export async function loadApp({ file, name, source }: ModuleExport): Promise<AppMethod> {
  const exported = await importExport(file, name, source);
  const fetch = fetchOf(exported);
  if (fetch === undefined)
    throw new LoadError(
      'http.app',
      `${source} is no application: export an object with a method fetch(request), as Hono does, or such a function`,
    );
  return (request, context) => runApp(fetch, request, context);
}

async function importExport(file: string, name: string, source: string): Promise<unknown> {
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    throw new LoadError('http.app', `${source} cannot be loaded: ${messageOf(error)}`);
  }
  if (!(name in module)) throw new LoadError('http.app', `${source} has no export ${name}`);
  return module[name];
}

function fetchOf(exported: unknown): Fetch | undefined {
  if (typeof exported === 'object' && exported !== null && 'fetch' in exported) {
    const { fetch } = exported;
    return typeof fetch === 'function' ? (request) => fetch.call(exported, request) : undefined;
  }
  return typeof exported === 'function' ? (exported as Fetch) : undefined;
}

async function runApp(fetch: Fetch, request: AppRequest, { signal, body }: AppContext): Promise<AppResult> {
  const { url, method, headers } = request;
  const stream = body === undefined ? null : ReadableStream.from(body);
  const made = new Request(url, {
    ...{ method, headers: headers.map(([name, value]) => [name, value] as [string, string]), signal },
    ...(stream === null ? {} : { body: stream, duplex: 'half' as const }),
  });
  const response = await fetch(made);
  if (!(response instanceof Response)) throw new TypeError('the application did not return a Response');
  return { response: { status: response.status, headers: [...response.headers] }, body: response.body };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
