// One keep-alive connection of a client to a platform process that may die at any moment. It distinguishes a lost
// response, after which the outcome is unknown, from a request that was never sent.
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
  /** Rejects only when there is no response in time, or an invalid one. */
  ask(port: number, what: Ask): Promise<Reply>;
};

/** Longer than any response may take, even on a busy machine. */
const TIMEOUT_MS = 30_000;

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
        const sent = request({ host: '127.0.0.1', port, method, path, headers, agent, timeout: TIMEOUT_MS });
        sent.on('timeout', () => sent.destroy(new Error(`${method} ${path} got no response`)));
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
