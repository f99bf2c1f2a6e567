// A head in many small pieces: how often it is parsed, on both sides of the proxy. Parsing it again for every piece is
// quadratic work, with which one client or upstream could stall all others.
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRequestHead, parseResponseHead } from '../../../src/http1/head-parser.ts';
import type { ConnectionScope } from '../../../src/proxy/context.ts';
import { ClientConnection } from '../../../src/proxy/h1/client-connection.ts';
import { HeadBuffer } from '../../../src/http1/head-buffer.ts';
import { defaultLimits, defaultTimeouts } from '../../../src/proxy/limits.ts';
import { ResponseReader, type ResponseSink } from '../../../src/proxy/h1/response-reader.ts';

vi.mock('../../../src/http1/head-parser.ts', { spy: true });
beforeEach(() => void vi.clearAllMocks());

const FIELDS = 90;
const fieldLines = Array.from({ length: FIELDS }, (_, i) => `H${i}: ${'b'.repeat(150)}\r\n`).join('');
/** The first piece, one for each line end, and the blank line's. */
const MAX_PARSES = FIELDS + 4;

/** What a parser may be asked to read, pieces pushed one after the other. */
function readings(buffer: HeadBuffer, pieces: readonly string[]): (string | undefined)[] {
  return pieces.map((piece) => {
    buffer.push(Buffer.from(piece));
    return buffer.takeForParsing()?.toString();
  });
}

describe('bytes of an incomplete head', () => {
  const rows: readonly (readonly [string, string[], (string | undefined)[]])[] = [
    ['are parsed as they come first, whatever they are', ['GET'], ['GET']],
    [
      'wait for a line end',
      ['G', 'ET', ' /\r', '\nA', ':'],
      ['G', undefined, undefined, 'GET /\r\nA', undefined],
    ],
    [
      'are parsed at their limit',
      ['G', 'a'.repeat(18), 'b', 'c'],
      ['G', undefined, `G${'a'.repeat(18)}b`, `G${'a'.repeat(18)}bc`],
    ],
    ['learn nothing from a piece that is empty', ['G', '', '\n'], ['G', undefined, 'G\n']],
  ];
  it.each(rows)('%s', (_, pieces, expected) => {
    expect(readings(new HeadBuffer(20), pieces)).toEqual(expected);
  });

  it('are the chunk itself while there is only one', () => {
    const buffer = new HeadBuffer(20);
    const chunk = Buffer.from('GET /\r\n');
    buffer.push(chunk);
    expect(buffer.takeForParsing()).toBe(chunk);
    expect(buffer.take()).toBe(chunk);
    expect([buffer.length, buffer.take(), buffer.takeForParsing()]).toEqual([0, undefined, undefined]);
  });

  it('are returned once, however many pieces came before', () => {
    const buffer = new HeadBuffer(20);
    for (const piece of ['a\n', 'b', 'c']) buffer.push(Buffer.from(piece));
    expect([buffer.takeForParsing()?.toString(), buffer.takeForParsing()]).toEqual(['a\nbc', undefined]);
  });

  it('never change once they were returned', () => {
    const buffer = new HeadBuffer(1_000);
    const taken: Buffer[] = [];
    for (let i = 0; i < 300; i += 1) {
      buffer.push(Buffer.from(`${i % 10}\n`));
      const bytes = buffer.takeForParsing();
      if (bytes) taken.push(bytes);
      if (i % 100 === 50) buffer.take();
      if (i % 100 === 80) buffer.restart(bytes?.subarray(2) ?? Buffer.alloc(0));
    }
    const text = Array.from({ length: 300 }, (_, i) => `${i % 10}\n`).join('');
    for (const bytes of taken) expect(text).toContain(bytes.toString());
    expect(taken).toHaveLength(300);
  });

  it('are copied a few times in all, not once for every piece', () => {
    const buffer = new HeadBuffer(100_000);
    const memories = new Set<ArrayBufferLike>();
    for (let i = 0; i < 60_000; i += 1) {
      buffer.push(Buffer.from('\n'));
      const bytes = buffer.takeForParsing();
      if (i > 0 && bytes) memories.add(bytes.buffer);
    }
    expect(memories.size).toBeLessThan(20);
  });

  it('that a parser left over wait for a line end', () => {
    const buffer = new HeadBuffer(20);
    buffer.restart(Buffer.from('HT'));
    expect([buffer.takeForParsing(), ...readings(buffer, ['T', '\n'])]).toEqual([
      undefined,
      undefined,
      'HTT\n',
    ]);
  });
});

describe('a head that comes byte by byte', () => {
  it('from a client is parsed once a line', () => {
    const socket = new Socket();
    const started: string[] = [];
    const connection = new ClientConnection(socket, scope, (_, head, rest) => {
      started.push(`${head.method} ${head.fields.count} ${rest.length}`);
    });
    for (const byte of Buffer.from(`GET / HTTP/1.1\r\n${fieldLines}\r\n`))
      socket.emit('data', Buffer.from([byte]));
    socket.destroy();
    expect([connection.isIdle, started]).toEqual([true, [`GET ${FIELDS} 0`]]);
    expect(vi.mocked(parseRequestHead).mock.calls.length).toBeLessThanOrEqual(MAX_PARSES);
  });

  it('from a host is parsed once a line, interim heads too', () => {
    const seen: number[] = [];
    const sink: ResponseSink = {
      onInterim: ({ status }) => void seen.push(status),
      onHead({ status, fields }) {
        seen.push(status, fields.count);
        return 'head';
      },
      onBody() {},
      onDone: (rest) => void seen.push(rest),
      onError: (code) => expect(code).toBeUndefined(),
    };
    const reader = new ResponseReader(
      'GET',
      { ...defaultLimits, maxHeadBytes: defaultLimits.maxResponseHeadBytes },
      sink,
    );
    const early = `HTTP/1.1 103 Early Hints\r\n${fieldLines}\r\n`.repeat(2);
    const final = `HTTP/1.1 204 No Content\r\n${fieldLines}\r\n`;
    // The last byte of one head and the first of the next in one piece: what is left over begins the next.
    const bytes = Buffer.from(early + final);
    const cut = early.length - 1;
    for (let at = 0; at < bytes.length; at += at === cut ? 2 : 1) {
      reader.push(bytes.subarray(at, at + (at === cut ? 2 : 1)));
    }
    expect(seen).toEqual([103, 103, 204, FIELDS, 0]);
    expect(vi.mocked(parseResponseHead).mock.calls.length).toBeLessThanOrEqual(3 * MAX_PARSES);
  });

  it('has its deadline from the first byte on', () => {
    vi.useFakeTimers();
    try {
      const socket = new Socket();
      const written = vi.spyOn(socket, 'write').mockReturnValue(true);
      const connection = new ClientConnection(socket, scope, () => {});
      socket.emit('data', Buffer.from('G'));
      vi.advanceTimersByTime(defaultTimeouts.headMs / 2);
      socket.emit('data', Buffer.from('E'));
      vi.advanceTimersByTime(defaultTimeouts.headMs / 2 - 1);
      expect([connection.isIdle, written.mock.calls]).toEqual([false, []]);
      vi.advanceTimersByTime(1);
      expect(String(written.mock.calls[0]?.[0])).toMatch(/^HTTP\/1\.1 408 /);
      socket.destroy();
    } finally {
      vi.useRealTimers();
    }
  });
});

// The parts of a context that a connection uses for a head.
const scope = {
  context: {
    sandbox: 'test',
    limits: defaultLimits,
    timeouts: defaultTimeouts,
    connections: new Set(),
    clients: new Set(),
    policy: () => ({ revision: 1 }),
    recorder: { emit: () => undefined },
    isDraining: () => false,
  },
  scheme: 'http',
  tunnel: undefined,
  clientAddress: undefined,
} as unknown as ConnectionScope;
