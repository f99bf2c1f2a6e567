// The least that a proxy with TLS on both sides can cost in Node: a relay on node:tls that replaces one header in each
// request and does nothing else. No parsing, no policy, no records, no limits. It is measured in every run, as the floor.
// It verifies the origin and keeps upstream connections of clients that have left. The only argument is JSON.
import { readFileSync } from 'node:fs';
import { type TLSSocket, connect, createSecureContext, createServer } from 'node:tls';

type Options = {
  readonly originPort: number;
  readonly host: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly credential: string;
};

const options: Options = JSON.parse(process.argv[2] ?? '{}');
const FIELD: Buffer = Buffer.from('Authorization: ');
const injected: Buffer = Buffer.from(`Authorization: ${options.credential}`);
const CR = 13;
const secureContext = createSecureContext({ ca: readFileSync(options.caFile) });
const idle: TLSSocket[] = [];
let session: Buffer | undefined;

function openUpstream(): TLSSocket {
  const { originPort: port, host: servername } = options;
  const ALPNProtocols = ['http/1.1'];
  const resume = session === undefined ? {} : { session };
  const upstream = connect({ host: '127.0.0.1', port, servername, secureContext, ALPNProtocols, ...resume });
  upstream.setNoDelay(true);
  upstream.on('session', (ticket) => (session = ticket));
  upstream.on('error', () => upstream.destroy());
  return upstream;
}

function takeIdle(): TLSSocket | undefined {
  for (let upstream = idle.pop(); upstream; upstream = idle.pop()) if (upstream.writable) return upstream;
  return undefined;
}

/** The load client sends each head with one write, and it arrives as one chunk. */
function replaceField(head: Buffer): Buffer {
  const start = head.indexOf(FIELD);
  const end = head.indexOf(CR, start);
  const out = Buffer.allocUnsafe(head.length - (end - start) + injected.length);
  head.copy(out, 0, 0, start);
  injected.copy(out, start);
  head.copy(out, start + injected.length, end);
  return out;
}

function serve(client: TLSSocket): void {
  const upstream = takeIdle() ?? openUpstream();
  let isOpen = true;
  let pending = 0;
  upstream.removeAllListeners('data').removeAllListeners('close');
  client.on('error', () => client.destroy());
  client.on('data', (head: Buffer) => {
    pending += 1;
    upstream.write(replaceField(head));
  });
  upstream.on('data', (chunk: Buffer) => {
    pending = 0;
    if (isOpen) client.write(chunk);
  });
  upstream.on('close', () => client.destroy());
  client.on('close', () => {
    isOpen = false;
    if (pending === 0) idle.push(upstream);
    else upstream.destroy();
  });
}

const server = createServer(
  {
    cert: readFileSync(options.certFile),
    key: readFileSync(options.keyFile),
    ALPNProtocols: ['http/1.1'],
    noDelay: true,
  },
  serve,
);
server.on('tlsClientError', (_error, socket) => socket.destroy());
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())));
