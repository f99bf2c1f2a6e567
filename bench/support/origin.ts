// A TLS origin, HTTP/1.1 and HTTP/2, as cheap as Node allows, with one strict check: below /v1/ each request must have the
// injected Authorization exactly once and no other, elsewhere the client's own. Any other request gets a 500, which fails
// the benchmark. A response repeats the X-Request-Id of its request. Started and controlled by messages.
import type { AddressInfo } from 'node:net';
import { type TLSSocket, createSecureContext, createServer } from 'node:tls';
import { serveH2 } from './h2-origin.ts';
import { idOf } from './heads.ts';
import type { Field } from './hpack.ts';

export type OriginLeaf = { readonly host: string; readonly chainPem: string; readonly keyPem: string };

export type OriginOptions = {
  readonly leaves: readonly OriginLeaf[];
  /** The Authorization required below /v1/, and on every other path. */
  readonly injected: string;
  readonly untouched: string;
};

/** The first message contains the options; a later one asks for the counts, or adds hosts. */
export type OriginCommand = OriginOptions | 'count' | { readonly add: readonly OriginLeaf[] };

export type OriginResponse = { readonly port: number };

/** Correct requests, by protocol, and accepted TLS connections, also by version and cipher suite. */
export type OriginCounts = {
  readonly h1: number;
  readonly h2: number;
  readonly connections: number;
  readonly suites: Readonly<Record<string, number>>;
};

const body: string = JSON.stringify({ ok: true, pad: 'x'.repeat(200) });
const fields: readonly Field[] = [
  ['Content-Type', 'application/json'],
  ['Content-Length', String(body.length)],
  ['Date', 'Thu, 01 Jan 2026 00:00:00 GMT'],
  ['Server', 'bench'],
];
const lines: string = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
/** The responses to heads that were checked before; a head that equals one of them is not parsed again. */
const checked = new Map<string, Buffer>();
const MAX_CHECKED = 8_192;
const suites: Record<string, number> = {};
const counts = { h1: 0, h2: 0, connections: 0, suites };
let addLeaf: (leaf: OriginLeaf) => void = () => undefined;

function responseTo(head: string): Buffer {
  const id = idOf(head);
  const idLine = id === undefined ? '' : `X-Request-Id: ${id}\r\n`;
  return Buffer.from(`HTTP/1.1 200 OK\r\n${lines}${idLine}\r\n${body}`);
}

/** What is wrong with a request for a path with these Authorization values; undefined when it is correct. */
function errorIn(
  path: string,
  values: readonly string[],
  { injected, untouched }: OriginOptions,
): string | undefined {
  if (values.length !== 1) return `Authorization was sent ${values.length} times`;
  const expected = path.startsWith('/v1/') ? injected : untouched;
  return values[0] === expected ? undefined : 'Authorization has a wrong value';
}

function errorInHead(head: string, options: OriginOptions): string | undefined {
  const values = [...head.matchAll(/^authorization:[ \t]*(.*?)[ \t]*\r$/gim)].map(([, value = '']) => value);
  return errorIn(head.split(' ', 2)[1] ?? '', values, options);
}

function errorInFields(request: readonly Field[], options: OriginOptions): string | undefined {
  const valuesOf = (name: string): readonly string[] =>
    request.filter(([each]) => each === name).map(([, value]) => value);
  return errorIn(valuesOf(':path').join(' '), valuesOf('authorization'), options);
}

function serve(socket: TLSSocket, options: OriginOptions): void {
  let unread = '';
  socket.on('data', (chunk: Buffer) => {
    const head = unread + chunk.toString('latin1');
    let response = checked.get(head);
    if (response === undefined) {
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return void (unread = head);
      const error = end + 4 === head.length ? errorInHead(head, options) : 'bytes after the request';
      if (error !== undefined) return refuse(socket, error);
      response = responseTo(head);
      if (checked.size >= MAX_CHECKED) checked.clear();
      checked.set(head, response);
    }
    unread = '';
    counts.h1 += 1;
    socket.write(response);
  });
}

function refuse(socket: TLSSocket, error: string): void {
  const head = `HTTP/1.1 500 Wrong\r\nContent-Length: ${error.length}\r\nConnection: close\r\n\r\n`;
  socket.end(head + error);
}

function start(options: OriginOptions): void {
  const [first] = options.leaves;
  const inH2 = fields.map(([name, value]): Field => [name.toLowerCase(), value]);
  const h2Response = { fields: [[':status', '200'] as const, ...inH2], body };
  const server = createServer(
    { cert: first?.chainPem, key: first?.keyPem, ALPNProtocols: ['h2', 'http/1.1'], noDelay: true },
    (socket) => {
      socket.on('error', () => socket.destroy());
      counts.connections += 1;
      const suite = `${socket.getProtocol()} ${socket.getCipher().standardName}`;
      suites[suite] = (suites[suite] ?? 0) + 1;
      if (socket.alpnProtocol !== 'h2') return serve(socket, options);
      const judge = (request: readonly Field[]): string | undefined => errorInFields(request, options);
      serveH2(socket, h2Response, judge, () => (counts.h2 += 1));
    },
  );
  addLeaf = ({ host, chainPem, keyPem }) =>
    server.addContext(host, createSecureContext({ cert: chainPem, key: keyPem }));
  options.leaves.forEach(addLeaf);
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.on('message', (command: OriginCommand) => {
  if (command === 'count') process.send?.(counts);
  else if ('add' in command) {
    command.add.forEach(addLeaf);
    process.send?.(counts);
  } else start(command);
});
process.on('disconnect', () => process.exit());
