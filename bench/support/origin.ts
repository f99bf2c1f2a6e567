// A TLS origin that costs as little as Node allows, and that is strict about one thing: below /v1/ each request must
// carry the injected Authorization exactly once and nothing else under that name, elsewhere the client's own. Any
// other request is answered 500, which fails the benchmark. Started and told by messages.
import type { AddressInfo } from 'node:net';
import { type TLSSocket, createSecureContext, createServer } from 'node:tls';

export type OriginOptions = {
  readonly leaves: readonly { readonly host: string; readonly chainPem: string; readonly keyPem: string }[];
  /** What /v1/ must bring, and what every other path must. */
  readonly injected: string;
  readonly untouched: string;
};

export type OriginAnswer = { readonly port: number };

const body: string = JSON.stringify({ ok: true, pad: 'x'.repeat(200) });
const answer: Buffer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
    `Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: bench\r\nX-Request-Id: 0123456789\r\n\r\n${body}`,
);

/** What is wrong with a request head, if anything. */
function faultIn(head: string, { injected, untouched }: OriginOptions): string | undefined {
  const expected = head.startsWith('GET /v1/') ? injected : untouched;
  const values = [...head.matchAll(/^authorization:[ \t]*(.*?)[ \t]*\r$/gim)].map(([, value]) => value);
  if (values.length !== 1) return `Authorization came ${values.length} times`;
  return values[0] === expected ? undefined : 'Authorization has another value than it should';
}

function serve(socket: TLSSocket, options: OriginOptions): void {
  let known: Buffer = Buffer.alloc(0);
  let unread: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    // Byte for byte the head that was checked last needs no second reading.
    if (unread.length === 0 && chunk.equals(known)) {
      socket.write(answer);
      return;
    }
    unread = Buffer.concat([unread, chunk]);
    const end = unread.indexOf('\r\n\r\n');
    if (end === -1) return;
    const fault =
      end + 4 === unread.length
        ? faultIn(unread.toString('latin1'), options)
        : 'bytes came behind the request';
    if (fault === undefined) {
      known = unread;
      unread = Buffer.alloc(0);
      socket.write(answer);
    } else {
      socket.end(
        `HTTP/1.1 500 Wrong\r\nContent-Length: ${fault.length}\r\nConnection: close\r\n\r\n${fault}`,
      );
    }
  });
  socket.on('error', () => socket.destroy());
}

process.once('message', (options: OriginOptions) => {
  const [first] = options.leaves;
  const server = createServer(
    { cert: first?.chainPem, key: first?.keyPem, ALPNProtocols: ['http/1.1'], noDelay: true },
    (socket) => serve(socket, options),
  );
  for (const { host, chainPem, keyPem } of options.leaves)
    server.addContext(host, createSecureContext({ cert: chainPem, key: keyPem }));
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
});
process.on('disconnect', () => process.exit());
