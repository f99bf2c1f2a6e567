// The load of the platform benchmark, a process of its own: clients on kept-alive connections, each of which sends its next
// request when it has read and checked the response to the one before.
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { percentilesOf } from '../support/percentiles.ts';

/** GET reads the listeners in turn, POST creates one with each request. */
export type Load = {
  readonly port: number;
  readonly method: 'GET' | 'POST';
  readonly fields: readonly string[];
  readonly listeners: readonly string[];
  /** In place of those of the listeners, with what each response contains. */
  readonly path?: string;
  readonly wanted?: string;
  /** A response with status 429 is counted apart, and the request is sent again. */
  readonly mayBeRejected?: boolean;
  readonly clients: number;
  /** Undefined: until each client has sent `requests`. */
  readonly durationMs?: number;
  readonly requests?: number;
};

export type Completed = {
  readonly count: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rejected: number;
};

let created = 0;

process.on('message', (load: Load) => {
  run(load).then(
    (completed) => process.send?.(completed),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());

async function run(load: Load): Promise<Completed> {
  const startMs = performance.now();
  const all = await Promise.all(Array.from({ length: load.clients }, () => runClient(load, startMs)));
  const seconds = (performance.now() - startMs) / 1000;
  const { count, p50, p99 } = percentilesOf(all.map(({ latencies }) => Float64Array.from(latencies)));
  const rejected = all.reduce((sum, one) => sum + one.rejected, 0);
  return { count, seconds, p50Ms: p50, p99Ms: p99, rejected };
}

type Client = { readonly latencies: readonly number[]; readonly rejected: number };

async function runClient(load: Load, startMs: number): Promise<Client> {
  const { port, durationMs = Infinity, requests = Infinity } = load;
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  const latencies: number[] = [];
  let rejected = 0;
  while (latencies.length < requests && performance.now() - startMs < durationMs) {
    const sentMs = performance.now();
    const { text, wanted } = load.method === 'GET' ? nextRead(load) : nextWrite(load);
    const response = await exchange(socket, text);
    if (load.mayBeRejected === true && response.startsWith('HTTP/1.1 429 ')) {
      rejected += 1;
      continue;
    }
    latencies.push(performance.now() - sentMs);
    if (!response.startsWith(`HTTP/1.1 ${load.method === 'GET' ? 200 : 201} `) || !response.includes(wanted))
      throw new Error(`expected ${wanted}, got ${response}`);
  }
  socket.destroy();
  return { latencies, rejected };
}

let reads = 0;

function nextRead(load: Load): { readonly text: string; readonly wanted: string } {
  const { fields, listeners, path, wanted = '' } = load;
  if (path !== undefined) return { text: [`GET ${path} HTTP/1.1`, ...fields, '', ''].join('\r\n'), wanted };
  reads += 1;
  const id = listeners[reads % listeners.length] ?? '';
  return {
    text: [`GET /v2/listeners/${id} HTTP/1.1`, ...fields, '', ''].join('\r\n'),
    wanted: `"id":"${id}"`,
  };
}

function nextWrite({ fields }: Load): { readonly text: string; readonly wanted: string } {
  created += 1;
  const wanted = `"compute_id":"bench-${process.pid}-${created}"`;
  const body = `{"compute_type":"k8s",${wanted},"compute_config":{"k8s_namespaces":["agents","jobs"]},"version":"1.4.2"}`;
  const more = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  return { text: ['POST /v2/listeners HTTP/1.1', ...fields, ...more, '', body].join('\r\n'), wanted };
}

/** The whole response, whose end its Content-Length says. */
function exchange(socket: Socket, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let response = '';
  const take = (bytes: Buffer): void => {
    response += bytes.toString('latin1');
    const headEnd = response.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(response.slice(0, headEnd + 2)) ?? [];
    if (length === undefined) return fail();
    if (response.length < headEnd + 4 + Number(length)) return;
    socket.off('data', take).off('close', fail).off('error', fail);
    resolve(response);
  };
  const fail = (): void => reject(new Error(`the connection ended after: ${response}`));
  socket.on('data', take).on('close', fail).on('error', fail);
  socket.write(text);
  return promise;
}
