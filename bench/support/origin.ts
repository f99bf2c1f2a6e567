// A TLS origin, HTTP/1.1 and HTTP/2, as cheap as Node allows, with one strict check: below /v1/ each request must have the
// injected Authorization exactly once and no other, elsewhere the client's own. Any other request gets a 500, which fails
// the benchmark. Started and controlled by messages.
import type { AddressInfo } from 'node:net';
import { type TLSSocket, createSecureContext, createServer } from 'node:tls';
import { serveH2 } from './h2-origin.ts';
import type { Field } from './hpack.ts';

export type OriginOptions = {
  readonly leaves: readonly { readonly host: string; readonly chainPem: string; readonly keyPem: string }[];
  /** The Authorization required below /v1/, and on every other path. */
  readonly injected: string;
  readonly untouched: string;
};

/** The first message contains the options; any later one requests the counts. */
export type OriginCommand = OriginOptions | 'count';

export type OriginResponse = { readonly port: number };

/** Correct requests, by protocol. */
export type OriginCounts = { readonly h1: number; readonly h2: number };

const body: string = JSON.stringify({ ok: true, pad: 'x'.repeat(200) });
const fields: readonly Field[] = [
  ['Content-Type', 'application/json'],
  ['Content-Length', String(body.length)],
  ['Date', 'Thu, 01 Jan 2026 00:00:00 GMT'],
  ['Server', 'bench'],
  ['X-Request-Id', '0123456789'],
];
const response: Buffer = Buffer.from(
  `HTTP/1.1 200 OK\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
);
const counts: { h1: number; h2: number } = { h1: 0, h2: 0 };

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
  let known: Buffer = Buffer.alloc(0);
  let unread: Buffer = Buffer.alloc(0);
  const accept = (): void => {
    counts.h1 += 1;
    socket.write(response);
  };
  socket.on('data', (chunk: Buffer) => {
    // A head that equals the last checked one byte for byte is not parsed again.
    if (unread.length === 0 && chunk.equals(known)) return accept();
    unread = Buffer.concat([unread, chunk]);
    const end = unread.indexOf('\r\n\r\n');
    if (end === -1) return;
    const error =
      end + 4 === unread.length ? errorInHead(unread.toString('latin1'), options) : 'bytes after the request';
    if (error === undefined) {
      known = unread;
      unread = Buffer.alloc(0);
      accept();
    } else {
      socket.end(
        `HTTP/1.1 500 Wrong\r\nContent-Length: ${error.length}\r\nConnection: close\r\n\r\n${error}`,
      );
    }
  });
}

function start(options: OriginOptions): void {
  const [first] = options.leaves;
  const inH2 = fields.map(([name, value]): Field => [name.toLowerCase(), value]);
  const h2Response = { fields: [[':status', '200'] as const, ...inH2], body };
  const server = createServer(
    { cert: first?.chainPem, key: first?.keyPem, ALPNProtocols: ['h2', 'http/1.1'], noDelay: true },
    (socket) => {
      socket.on('error', () => socket.destroy());
      if (socket.alpnProtocol !== 'h2') return serve(socket, options);
      const judge = (request: readonly Field[]): string | undefined => errorInFields(request, options);
      serveH2(socket, h2Response, judge, () => (counts.h2 += 1));
    },
  );
  for (const { host, chainPem, keyPem } of options.leaves)
    server.addContext(host, createSecureContext({ cert: chainPem, key: keyPem }));
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.on('message', (command: OriginCommand) => {
  if (command === 'count') process.send?.(counts);
  else start(command);
});
process.on('disconnect', () => process.exit());
