// HTTP over the unix socket of the box host. A box host that does not run is started; one that does not respond is an error
// that says so.
import { readFile } from 'node:fs/promises';
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { z } from '../../base/schema.ts';
import { type RuntimeErrorKind, RuntimeError } from './contract.ts';
import { hostError } from './box-host-documents.ts';

export type Ask = {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal;
  /** Without a byte; 0: for ever. */
  readonly timeoutMs?: number;
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
    return readResponse(schema, await this.open(ask));
  }

  /**
   * Sends `content` as the box host reads it. Rejects with the error of `content` if that throws: the box host then sees that
   * the end is missing. As `ask`, but a box host must run.
   */
  async upload<T>(
    schema: z.ZodType<T>,
    ask: Ask,
    content: AsyncIterable<Uint8Array>,
  ): Promise<T | undefined> {
    const failed: { cause?: unknown } = {};
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = await this.#request(ask, { 'Content-Type': 'application/octet-stream' }, resolve);
    sent.on('error', reject);
    pipeline(Readable.from(watched(content, failed)), sent).catch(reject);
    try {
      // It may come before everything is sent, and nothing more is read then.
      return await readResponse(schema, await promise);
    } catch (error) {
      throw 'cause' in failed ? failed.cause : unavailable(error);
    } finally {
      sent.destroy();
    }
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

  /** The connection that the box host upgrades to this protocol. Rejects with a RuntimeError. */
  async upgrade(path: string, protocol: string): Promise<Socket> {
    const ask = { method: 'GET', path };
    try {
      return await this.#upgrade(ask, protocol);
    } catch (error) {
      if (!isAbsent(error)) throw unavailable(error);
    }
    await this.#ensure();
    return this.#upgrade(ask, protocol).catch((error: unknown) => {
      throw unavailable(error);
    });
  }

  async #upgrade(ask: Ask, protocol: string): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const headers = { Connection: 'Upgrade', Upgrade: protocol };
    const sent = await this.#request(ask, headers, (response) => {
      readAll(response).then((bytes) => reject(errorOf(parseJson(bytes))), reject);
    });
    sent.on('upgrade', (_, socket: Socket, head: Buffer) => {
      // A client may be silent for hours.
      socket.setTimeout(0);
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
    { method, path, signal, timeoutMs = TIMEOUT_MS }: Ask,
    fields: OutgoingHttpHeaders,
    onResponse: (response: IncomingMessage) => void,
  ): Promise<ClientRequest> {
    const token = (await readFile(join(this.#directory, 'token'), 'utf8')).trim();
    const headers = { Host: 'localhost', Authorization: `Bearer ${token}`, ...fields };
    const socketPath = join(this.#directory, 'api.sock');
    const sent = requestHttp(
      { socketPath, method, path, headers, agent: false, timeout: timeoutMs, signal },
      onResponse,
    );
    sent.on('timeout', () => sent.destroy());
    return sent;
  }
}

async function* watched(content: AsyncIterable<Uint8Array>, failed: { cause?: unknown }) {
  try {
    yield* content;
  } catch (cause) {
    failed.cause = cause;
    throw cause;
  }
}

async function readResponse<T>(schema: z.ZodType<T>, response: IncomingMessage): Promise<T | undefined> {
  const bytes = await readAll(response);
  if (bytes.length === 0 && response.statusCode === 204) return undefined;
  const value = parseJson(bytes);
  if (response.statusCode !== 200) throw errorOf(value);
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new RuntimeError('unavailable', 'The box host is of another version: end it');
  return parsed.data;
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
  'invalid_snapshot',
  'no_capacity',
  'not_supported',
  'unavailable',
  'failed',
  'port_refused',
  'not_listening',
  'agent_lost',
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
