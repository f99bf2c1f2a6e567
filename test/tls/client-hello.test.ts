import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createHelloCollector,
  fatalAlert,
  type HelloReading,
  maxHelloBytes,
} from '../../src/tls/client-hello.ts';
import { runs } from '../support/run-size.ts';
import { captureHello, curl, nodeClient, openssl, python } from './captured-hello.ts';
import {
  alpn,
  extension,
  helloBody,
  inRecords,
  message,
  padding,
  readClientHello,
  record,
  serverName,
} from './hello-bytes.ts';

const both = ['h2', 'http/1.1'];
const manyProtocols = Array.from({ length: 150 }, (_, n) => `${n}`.padStart(200, 'p'));
const good = helloBody({ extensions: Buffer.concat([serverName('good.test'), alpn(...both)]) });
const hello: HelloReading = { kind: 'hello', serverName: 'good.test', alpn: both };
const more: HelloReading = { kind: 'more' };

describe('the hello of a real client', () => {
  it.each([
    {
      what: 'Node',
      client: nodeClient({ servername: 'good.test', ALPNProtocols: both }),
      name: 'good.test',
      protocols: both,
    },
    {
      what: 'Node, TLS 1.2 only',
      client: nodeClient({ servername: 'good.test', maxVersion: 'TLSv1.2' }),
      name: 'good.test',
      protocols: undefined,
    },
    {
      what: 'Node, to an address',
      client: nodeClient({ ALPNProtocols: ['http/1.1'] }),
      name: undefined,
      protocols: ['http/1.1'],
    },
    {
      what: 'Node, over 16 KiB',
      client: nodeClient({ servername: 'good.test', ALPNProtocols: manyProtocols }),
      name: 'good.test',
      protocols: manyProtocols,
    },
    { what: 'Python', client: python('good.test', both), name: 'good.test', protocols: both },
    {
      what: 'Python, without ALPN',
      client: python('xn--bcher-kva.test', []),
      name: 'xn--bcher-kva.test',
      protocols: undefined,
    },
    { what: 'curl', client: curl('https://good.test/'), name: 'good.test', protocols: both },
    {
      what: 'curl, spelt oddly',
      client: curl('https://GOOD.Test./', '--http1.1'),
      name: 'good.test',
      protocols: ['http/1.1'],
    },
    {
      what: 'curl, to an address',
      client: curl('https://192.0.2.1/', '--no-alpn'),
      name: undefined,
      protocols: undefined,
    },
    {
      what: 'openssl',
      client: openssl('-servername', 'Good.Test', '-alpn', 'h2'),
      name: 'good.test',
      protocols: ['h2'],
    },
    {
      what: 'openssl, with a dot at the end',
      client: openssl('-servername', 'good.test.'),
      name: 'good.test',
      protocols: undefined,
    },
    {
      what: 'openssl, without a name',
      client: openssl('-noservername', '-tls1_2'),
      name: undefined,
      protocols: undefined,
    },
  ])('is read, wherever it is split: $what', async ({ client, name, protocols }) => {
    const { bytes } = await captureHello(client);
    const expected = { kind: 'hello', serverName: name, alpn: protocols };
    expect(readClientHello(bytes)).toEqual(expected);
    const step = Math.ceil(bytes.length / 4_096); // every byte, save in the giant
    for (let at = 0; at < bytes.length; at += step) {
      const collector = createHelloCollector();
      expect(collector.push(bytes.subarray(0, at))).toEqual(more);
      expect(collector.push(bytes.subarray(at))).toEqual(expected);
      expect(collector.bytes.equals(bytes)).toBe(true);
    }
  });

  it('can be longer than one record', async () => {
    const { bytes } = await captureHello(nodeClient({ ALPNProtocols: manyProtocols }));
    expect(bytes.length).toBeGreaterThan(30_000);
    expect(bytes.readUInt16BE(3)).toBe(16_384);
  });
});

describe('a hello', () => {
  it.each([1, 2, 3, 4, 5, 100])('is read from records of %i bytes', (size) => {
    expect(readClientHello(inRecords(message(good), size))).toEqual(hello);
  });

  it('is read when another message follows in its record, or another record', () => {
    expect(readClientHello(record(Buffer.concat([message(good), message(good, 16)])))).toEqual(hello);
    expect(readClientHello(Buffer.concat([record(message(good)), record(Buffer.alloc(8), 23)]))).toEqual(
      hello,
    );
  });

  it('of the full length is read byte by byte, in records of one byte as well', () => {
    const largest = (overhead: number): Buffer => {
      const space = maxHelloBytes - overhead - 4 - helloBody({ extensions: padding(0) }).length;
      return message(helloBody({ extensions: padding(space) }));
    };
    const expected = { kind: 'hello', serverName: undefined, alpn: undefined };
    // Five records hold 64 KiB with their headers.
    expect(collectedBytewise(inRecords(largest(5 * 5)))).toEqual(expected);
    const tiny = message(helloBody({ extensions: padding(10_000) }));
    expect(collectedBytewise(inRecords(tiny, 1))).toEqual(expected);
  });

  it('in a collector leaves its bytes, and those after it, to OpenSSL', () => {
    const bytes = Buffer.concat([record(message(good)), Buffer.alloc(20_000, 23)]);
    const collector = createHelloCollector();
    for (let at = 0; at < bytes.length; at += 999) collector.push(bytes.subarray(at, at + 999));
    expect(collector.push(Buffer.alloc(0))).toEqual(hello);
    expect(collector.bytes.equals(bytes)).toBe(true);
  });

  it('is not waited for where TLS does not begin', () => {
    for (let first = 0; first < 256; first += 1) {
      const kind = first === 22 ? 'more' : 'not_tls';
      expect(readClientHello(Buffer.from([first]))).toEqual({ kind });
    }
    expect(readClientHello(Buffer.alloc(0))).toEqual(more);
    expect(readClientHello(Buffer.from('GET / HTTP/1.1\r\n'))).toEqual({ kind: 'not_tls' });
    expect(readClientHello(Buffer.from('802e0100020015', 'hex'))).toEqual({ kind: 'not_tls' }); // SSLv2
  });
});

describe('what begins like TLS is an error', () => {
  const announced = (length: number): Buffer =>
    Buffer.from([1, length >> 16, (length >> 8) & 255, length & 255]);
  const header = (length: number, type = 22, major = 3): Buffer =>
    Buffer.from([type, major, 1, length >> 8, length & 255]);
  const records = (count: number): Buffer =>
    Buffer.concat(Array<Buffer>(count).fill(record(Buffer.alloc(16_384, 1))));

  it.each([
    {
      what: 'a record of no protocol version 3',
      bytes: header(512, 22, 2),
      code: 'record_invalid',
    },
    { what: 'an empty record', bytes: header(0), code: 'record_invalid' },
    { what: 'a record of over 16,384 bytes, at its header', bytes: header(16_385), code: 'record_invalid' },
    {
      what: 'an alert between two halves',
      bytes: Buffer.concat([inRecords(message(good).subarray(0, 50)), header(2, 21)]),
      code: 'record_invalid',
    },
    { what: 'another handshake message', bytes: record(message(good, 2)), code: 'not_client_hello' },
    {
      what: 'a message that announces more than the cap',
      bytes: record(announced(maxHelloBytes - 8)),
      code: 'hello_too_long',
    },
    { what: 'a message that announces 16 MiB', bytes: record(announced(0xffffff)), code: 'hello_too_long' },
    {
      what: 'records beyond the cap, at the header',
      bytes: Buffer.concat([record(announced(60_000)), records(3), header(16_384)]),
      code: 'hello_too_long',
    },
    { what: 'a message without content', bytes: record(announced(0)), code: 'hello_malformed' },
    {
      what: 'a message that ends in its middle',
      bytes: record(message(good.subarray(0, 60))),
      code: 'hello_malformed',
    },
    {
      what: 'two server names',
      bytes: record(message(helloBody({ extensions: serverName('good.test', 'evil.test') }))),
      code: 'server_name_invalid',
    },
  ])('$what', ({ bytes, code }) => {
    expect(readClientHello(bytes)).toEqual({ kind: 'error', code });
    expect(readClientHello(bytes.subarray(0, -1))).toEqual(more);
  });

  it('but a message just below the cap is waited for', () => {
    expect(readClientHello(record(announced(maxHelloBytes - 9)))).toEqual(more);
  });
});

describe('any bytes', () => {
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map(Buffer.from),
    fc
      .tuple(fc.uint8Array({ maxLength: 80 }), fc.constantFrom(22, 22, 22, 21), fc.constantFrom(3, 3, 3, 2))
      .map(([bytes, type, major]) => record(Buffer.from(bytes), type, major)),
    fc.integer({ min: 1, max: 60 }).map((size) => inRecords(message(good), size)),
    fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, value]) => {
      const changed = Buffer.from(good);
      changed[at] = value;
      return inRecords(message(changed), 50);
    }),
    fc.array(fc.tuple(fc.nat(20), fc.uint8Array({ maxLength: 12 })), { maxLength: 4 }).map((entries) => {
      const extensions = Buffer.concat(entries.map(([type, data]) => extension(type, Buffer.from(data))));
      return record(message(helloBody({ extensions })));
    }),
  );
  const streams = fc.array(pieces, { minLength: 1, maxLength: 4 }).map((parts) => Buffer.concat(parts));

  it('are read the same at once, byte by byte and in any two pieces, and a final result never changes', () => {
    fc.assert(
      fc.property(streams, fc.nat(), (bytes, anywhere) => {
        const bytewise = createHelloCollector();
        let decided: HelloReading | undefined;
        for (let end = 1; end <= bytes.length; end += 1) {
          const reading = readClientHello(bytes.subarray(0, end));
          expect(bytewise.push(bytes.subarray(end - 1, end))).toEqual(reading);
          if (decided !== undefined) expect(reading).toEqual(decided);
          if (reading.kind !== 'more') decided = reading;
        }
        const split = anywhere % (bytes.length + 1);
        const collector = createHelloCollector();
        collector.push(bytes.subarray(0, split));
        expect(collector.push(bytes.subarray(split))).toEqual(readClientHello(bytes));
      }),
      { numRuns: runs(1_000) },
    );
  });
});

describe('a fatal alert is understood', () => {
  it.each([
    { name: 'unrecognized_name', code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' },
    { name: 'decode_error', code: 'ERR_SSL_TLSV1_ALERT_DECODE_ERROR' },
    { name: 'no_application_protocol', code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL' },
    { name: 'internal_error', code: 'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR' },
  ] as const)('by Node: $name', async ({ name, code }) => {
    const { outcome } = await captureHello(
      nodeClient({ servername: 'good.test', ALPNProtocols: both }),
      name,
    );
    expect(outcome).toBe(code);
  });

  it('by curl and openssl', async () => {
    const [byCurl, byOpenssl] = await Promise.all([
      captureHello(curl('https://good.test/')),
      captureHello(openssl()),
    ]);
    expect(byCurl.outcome).toMatchObject({ code: 35, stderr: expect.stringContaining('unrecognized name') });
    expect(byOpenssl.outcome).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('unrecognized name'),
    });
  });

  it('and is a buffer of its own each time', () => {
    expect(fatalAlert('decode_error')).not.toBe(fatalAlert('decode_error'));
  });
});

function collectedBytewise(bytes: Buffer): HelloReading {
  const collector = createHelloCollector();
  for (let at = 0; at < bytes.length - 1; at += 1) {
    const { kind } = collector.push(bytes.subarray(at, at + 1));
    if (kind !== 'more') expect.unreachable(`${kind} after ${at + 1} of ${bytes.length} bytes`);
  }
  return collector.push(bytes.subarray(-1));
}
