// The admin API of one sidecar, over its unix socket.
import { request as requestHttp } from 'node:http';
import { BoxError } from '../box-error.ts';

export type AdminReply = { readonly status: number; readonly document: Readonly<Record<string, unknown>> };

/** The sidecar validates and compiles a policy in well under a second. */
const TIMEOUT_MS = 30_000;
const MAX_REPLY_BYTES = 1024 * 1024;

export class SidecarAdmin {
  readonly #socketPath: string;
  readonly #token: string;

  constructor(socketPath: string, token: string) {
    this.#socketPath = socketPath;
    this.#token = token;
  }

  /** Rejects with a BoxError `unavailable` if the sidecar does not respond. */
  async ask(method: string, path: string, body?: unknown): Promise<AdminReply> {
    const { promise, resolve, reject } = Promise.withResolvers<AdminReply>();
    const fail = (): void =>
      reject(new BoxError('unavailable', 'The sidecar of the box does not respond: try again'));
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      Host: 'localhost',
      Authorization: `Bearer ${this.#token}`,
      ...(content && { 'Content-Type': 'application/json', 'Content-Length': content.length }),
    };
    const asked = requestHttp(
      { socketPath: this.#socketPath, method, path, headers, agent: false, timeout: TIMEOUT_MS },
      (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > MAX_REPLY_BYTES) asked.destroy();
          chunks.push(chunk);
        });
        response.on('error', fail);
        response.on('close', fail);
        response.on('end', () => {
          const document = parseReply(Buffer.concat(chunks));
          if (document === undefined) fail();
          else resolve({ status: response.statusCode ?? 0, document });
        });
      },
    );
    asked.on('timeout', () => asked.destroy());
    asked.on('error', fail);
    asked.end(content);
    return promise;
  }
}

/** Undefined: no JSON object. */
function parseReply(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  if (bytes.length === 0) return {};
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** What the main listener serves to everybody. Rejects with a BoxError. */
export async function readText(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (): void =>
    reject(new BoxError('unavailable', 'The sidecar of the box does not respond: try again'));
  // An agent of its own: the global one would use a proxy of the environment.
  const asked = requestHttp(url, { agent: false, timeout: TIMEOUT_MS }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => (text += part));
    response.on('close', fail);
    response.on('end', () => (response.statusCode === 200 ? resolve(text) : fail()));
  });
  asked.on('timeout', () => asked.destroy());
  asked.on('error', fail);
  asked.end();
  return promise;
}
