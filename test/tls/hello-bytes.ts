// ClientHello bytes built by hand, every length right unless a test makes it wrong; and a parser of whole ones.
import { createHelloCollector, type HelloReading } from '../../src/tls/client-hello.ts';

export type HelloParts = {
  readonly version?: Buffer;
  readonly sessionId?: Buffer;
  readonly cipherSuites?: Buffer;
  readonly compressions?: Buffer;
  /** The whole extensions vector; undefined leaves it out, length and all. */
  readonly extensions?: Buffer | undefined;
};

/** The body of the message: what follows its type and length. */
export function helloBody(parts: HelloParts = {}): Buffer {
  const { extensions } = parts;
  return Buffer.concat([
    parts.version ?? Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, parts.sessionId ?? Buffer.alloc(32, 8)),
    vector(2, parts.cipherSuites ?? Buffer.from([0x13, 0x01, 0xc0, 0x2b])),
    vector(1, parts.compressions ?? Buffer.from([0])),
    ...(extensions === undefined ? [] : [vector(2, extensions)]),
  ]);
}

/** A handshake message: type, three bytes of length, body. */
export function message(body: Buffer, type = 1): Buffer {
  return Buffer.concat([
    Buffer.from([type, body.length >> 16, (body.length >> 8) & 255, body.length & 255]),
    body,
  ]);
}

/** Cuts handshake bytes into records of at most `size` bytes each. */
export function inRecords(handshake: Buffer, size = 16_384): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < handshake.length; at += size) records.push(record(handshake.subarray(at, at + size)));
  return Buffer.concat(records);
}

export function record(fragment: Buffer, type = 22, major = 3): Buffer {
  return Buffer.concat([Buffer.from([type, major, 1]), vector(2, fragment)]);
}

export function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 255]), vector(2, data)]);
}

export function serverName(...names: readonly (string | Buffer)[]): Buffer {
  const entries = names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))]));
  return extension(0, vector(2, Buffer.concat(entries)));
}

export function alpn(...protocols: readonly string[]): Buffer {
  return extension(
    16,
    vector(2, Buffer.concat(protocols.map((each) => vector(1, Buffer.from(each, 'latin1'))))),
  );
}

/** An extension that only takes space. */
export function padding(size: number): Buffer {
  return extension(21, Buffer.alloc(size));
}

export function vector(lengthSize: 1 | 2, content: Buffer): Buffer {
  const length = Buffer.alloc(lengthSize);
  length.writeUIntBE(content.length, 0, lengthSize);
  return Buffer.concat([length, content]);
}

/** Parses all bytes of a connection so far in one piece. */
export function readClientHello(bytes: Buffer): HelloReading {
  return createHelloCollector().push(bytes);
}
