// A DNS server on 127.0.0.1:53, which is free only in a private network namespace. It responds as configured, or not at
// all. Independent of the proxy.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Returns the address of a name, or `servfail` or `silent`; called once for each query. */
export type Responding = (name: string) => string;

export type NameServer = AsyncDisposable & { respondWith(responding: Responding): void };

const TYPE_A = 1;
const HEADER_BYTES = 12;
/** A question ends with type and class. */
const TAIL_BYTES = 4;
const NO_ERROR = 0x8180;
const SERVFAIL = 0x8182;

export async function createNameServer(responding: Responding): Promise<NameServer> {
  let current = responding;
  const responses = new Map<string, string>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = readQuestion(query);
    const isAddress = type === TYPE_A;
    // A resolver also queries the other address family, at the same time or afterwards.
    if (isAddress) responses.set(name, current(name));
    const response = responses.get(name) ?? 'servfail';
    if (response !== 'silent') socket.send(reply(query.subarray(0, end), response, isAddress), port, address);
  });
  socket.bind(53, '127.0.0.1');
  await once(socket, 'listening');
  return {
    respondWith(next) {
      current = next;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 1 + TAIL_BYTES };
}

/** The DNS response to the question: one A record with TTL 0, or none for another type. */
function reply(question: Buffer, response: string, isAddress: boolean): Buffer {
  const message = Buffer.from(question);
  const hasResponse = isAddress && response !== 'servfail';
  message.writeUInt16BE(response === 'servfail' ? SERVFAIL : NO_ERROR, 2);
  // One question; no authority and no additional records, even if the query had some (EDNS).
  [1, hasResponse ? 1 : 0, 0, 0].forEach((count, i) => message.writeUInt16BE(count, 4 + i * 2));
  if (!hasResponse) return message;
  // The name points to the question (RFC 1035 §4.1.4); type A, class IN, TTL 0, four bytes.
  const record = Buffer.from([
    0xc0,
    HEADER_BYTES,
    0,
    TYPE_A,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    4,
    ...response.split('.').map(Number),
  ]);
  return Buffer.concat([message, record]);
}
