// HTTP over the unix socket of the box host. A box host that does not run is started; one that does not respond is an error
// that says so.
import { readFile } from 'node:fs/promises';
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { z } from '../../base/schema.ts';
import { type RuntimeErrorKind, RuntimeError } from './contract.ts';
import { hostError } from './box-host-documents.ts';

export type Ask = {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal;
};

/** A box may have to wait for its sidecar. */
const TIMEOUT_MS = 60_000;
const MAX_REPLY_BYTES = 16 * 1024 * 1024;

export class BoxHostConnection {
  readonly #directory: string;
  /** Resolves when a box host listens. */
  readonly #ensure: () => Promise<void>;

  constructor(directory: string, ensure: () => Promise<void>) {
    this.#directory = directory;
    this.#ensure = ensure;
  }

  /** The response by `schema`; undefined for one without a body. Rejects with a RuntimeError. */
  async ask<T>(schema: z.ZodType<T>, ask: Ask): Promise<T | undefined> {
    const response = await this.open(ask);
    const bytes = await readAll(response);
    if (bytes.length === 0 && response.statusCode === 204) return undefined;
    const value = parseJson(bytes);
    if (response.statusCode !== 200) throw errorOf(value);
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw new RuntimeError('unavailable', 'The box host is of another version: end it');
    return parsed.data;
  }

  /** The response as it begins. A box host that does not listen is started, and asked then. */
  async open(ask: Ask): Promise<IncomingMessage> {
    try {
      return await this.#send(ask);
    } catch (error) {
      if (!isAbsent(error) || ask.signal?.aborted) throw unavailable(error);
    }
    await this.#ensure();
    return this.#send(ask).catch((error: unknown) => {
      throw unavailable(error);
    });
  }

  /** A connection to the data plane of the box: an HTTP server of the box host. Rejects with a RuntimeError. */
  async upgrade(path: string): Promise<Duplex> {
    const ask = { method: 'GET', path };
    try {
      return await this.#upgrade(ask);
    } catch (error) {
      if (!isAbsent(error)) throw unavailable(error);
    }
    await this.#ensure();
    return this.#upgrade(ask).catch((error: unknown) => {
      throw unavailable(error);
    });
  }

  async #upgrade(ask: Ask): Promise<Duplex> {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    const headers = { Connection: 'Upgrade', Upgrade: 'sallyport-data-plane' };
    const sent = await this.#request(ask, headers, (response) => {
      readAll(response).then((bytes) => reject(errorOf(parseJson(bytes))), reject);
    });
    sent.on('upgrade', (_, socket, head: Buffer) => {
      // A client may be silent for hours.
      if ('setTimeout' in socket && typeof socket.setTimeout === 'function') socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    sent.on('error', reject);
    sent.end();
    return promise;
  }

  async #send(ask: Ask): Promise<IncomingMessage> {
    const content = ask.body === undefined ? undefined : Buffer.from(JSON.stringify(ask.body));
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = content && { 'Content-Type': 'application/json', 'Content-Length': content.length };
    const sent = await this.#request(ask, { ...headers }, resolve);
    sent.on('error', reject);
    sent.end(content);
    return promise;
  }

  async #request(
    { method, path, signal }: Ask,
    fields: OutgoingHttpHeaders,
    onResponse: (response: IncomingMessage) => void,
  ): Promise<ClientRequest> {
    const token = (await readFile(join(this.#directory, 'token'), 'utf8')).trim();
    const headers = { Host: 'localhost', Authorization: `Bearer ${token}`, ...fields };
    const socketPath = join(this.#directory, 'api.sock');
    const sent = requestHttp(
      { socketPath, method, path, headers, agent: false, timeout: TIMEOUT_MS, signal },
      onResponse,
    );
    sent.on('timeout', () => sent.destroy());
    return sent;
  }
}

/** Nobody listens, or the token has just been replaced by a start. */
function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ECONNREFUSED'].includes(String((error as NodeJS.ErrnoException).code));
}

function unavailable(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause;
  return Object.assign(new RuntimeError('unavailable', 'The box host does not respond'), { cause });
}

const KINDS: ReadonlySet<string> = new Set<RuntimeErrorKind>([
  'invalid_policy',
  'no_capacity',
  'not_supported',
  'unavailable',
  'failed',
]);

function errorOf(value: unknown): RuntimeError {
  const { code, detail, issues } = hostError.safeParse(value).data ?? { code: '', detail: '', issues: [] };
  const kind = KINDS.has(code) ? (code as RuntimeErrorKind) : 'unavailable';
  return new RuntimeError(
    kind,
    typeof detail === 'string' ? detail : 'The box host rejects the request',
    issues,
  );
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_REPLY_BYTES) throw new Error('too long');
      chunks.push(chunk);
    }
  } catch (error) {
    throw unavailable(error);
  }
  return Buffer.concat(chunks);
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
