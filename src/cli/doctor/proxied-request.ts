// What `sallyport doctor` asks the proxy itself: its readiness, and one request through it. No body is read, and no header of
// a response is shown but the error code of the proxy.
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect } from 'node:tls';
import type { ListenAddress } from '../../base/listen-address.ts';
import { codeOf } from '../../tls/pem-files.ts';

/** `error`: the code of the proxy's refusal. `failure`: why there was no response. */
export type Reply =
  | { readonly status: number; readonly error: string | undefined; readonly date: string | undefined }
  | { readonly failure: string };

const TIMEOUT_MS = 15_000;

/** GET of a probe on the proxy's own port. */
export function askProbe(proxy: ListenAddress, path: string): Promise<Reply> {
  return send({ ...proxy, path, method: 'GET' });
}

/** HEAD of an https URL through a tunnel, in which the proxy's certificate must be valid under `roots`. */
export async function headThroughTunnel(
  proxy: ListenAddress,
  login: string | undefined,
  to: {
    readonly authority: string;
    readonly host: string;
    readonly isName: boolean;
    readonly target: string;
  },
  roots: readonly string[],
  timeoutMs: number = TIMEOUT_MS,
): Promise<Reply> {
  const headers = {
    Host: to.authority,
    ...(login === undefined ? {} : { 'Proxy-Authorization': `Basic ${login}` }),
  };
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const asked = request({
    ...proxy,
    method: 'CONNECT',
    path: to.authority,
    headers,
    agent: false,
    timeout: timeoutMs,
  });
  asked.on('timeout', () => asked.destroy(new Error('timeout')));
  asked.on('error', (error) => resolve(toFailure(error)));
  asked.on('connect', (response, socket) => {
    if (response.statusCode !== 200) {
      socket.destroy();
      return resolve(toReply(response));
    }
    const tls = connect({
      socket,
      ca: [...roots],
      ...(to.isName ? { servername: to.host } : { host: to.host }),
    });
    // The timeout of the CONNECT ended with its response, and the host of a tunnel may be silent.
    tls.setTimeout(timeoutMs, () => tls.destroy(new Error('timeout')));
    tls.on('error', (error) => resolve(toFailure(error)));
    tls.once('secureConnect', () => {
      // node:http calls createConnection only without an agent.
      const inside = { agent: undefined, createConnection: () => tls, method: 'HEAD', path: to.target };
      void send({ ...inside, headers: { Host: to.authority } })
        .then(resolve)
        .finally(() => tls.destroy());
    });
  });
  asked.end();
  return promise;
}

function send(options: RequestOptions): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  // An agent of its own: the global one would use HTTP_PROXY.
  const asked = request({ agent: false, timeout: TIMEOUT_MS, ...options }, (response) => {
    response.resume();
    resolve(toReply(response));
  });
  asked.on('timeout', () => asked.destroy(new Error('timeout')));
  asked.on('error', (error) => resolve(toFailure(error)));
  asked.end();
  return promise;
}

/** Only our own timeouts have no code. */
function toFailure(error: Error): Reply {
  return { failure: String(codeOf(error) ?? 'no response in time') };
}

function toReply({ statusCode = 0, headers }: IncomingMessage): Reply {
  const error = String(headers['x-sallyport-error'] ?? '');
  return { status: statusCode, error: CODE.test(error) ? error : undefined, date: headers.date };
}

// The field may be of the upstream, and is printed: node:http lets C1 control characters pass, which terminals execute.
const CODE = /^[a-z0-9_]{1,64}$/;
