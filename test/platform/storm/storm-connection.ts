// One keep-alive connection of a client to a platform process that may die at any moment. It tells an answer that was
// lost, which leaves open what happened, from a request that never left.
import { Agent, request } from 'node:http';

export type Responded = {
  readonly kind: 'responded';
  readonly status: number;
  readonly body: unknown;
  readonly ms: number;
};
export type Reply = Responded | { readonly kind: 'lost' } | { readonly kind: 'unsent' };

export type Ask = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly key: string;
  readonly body?: unknown;
};

export type StormConnection = Disposable & {
  /** Never rejects but for an answer that does not come, or is none. */
  ask(port: number, what: Ask): Promise<Reply>;
};

/** Longer than any answer may take, also on a machine that is starved. */
const HANGS_MS = 30_000;

export function openStormConnection(): StormConnection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    ask(port, { method, path, key, body }) {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        'X-Api-Key': key,
        ...(text === undefined
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(text)) }),
      };
      const startedMs = performance.now();
      return new Promise<Reply>((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, method, path, headers, agent, timeout: HANGS_MS });
        sent.on('timeout', () => sent.destroy(new Error(`${method} ${path} has no answer`)));
        sent.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code === 'ECONNREFUSED') resolve({ kind: 'unsent' });
          else if (error.code === undefined) reject(error);
          else resolve({ kind: 'lost' });
        });
        sent.on('response', (response) => {
          let received = '';
          response.setEncoding('utf8').on('data', (part: string) => (received += part));
          response.on('error', () => resolve({ kind: 'lost' }));
          response.on('end', () => {
            const ms = performance.now() - startedMs;
            const value: unknown = received === '' ? undefined : JSON.parse(received);
            resolve({ kind: 'responded', status: response.statusCode ?? 0, body: value, ms });
          });
        });
        sent.end(text);
      });
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}
