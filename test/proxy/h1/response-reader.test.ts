// Responses parsed into interim heads, a final head and a body, over any split of the bytes. Bytes behind the end are
// counted and never forwarded.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldValue } from '../../../src/http1/head-parser.ts';
import {
  ResponseReader,
  holdsWholeMessage,
  type ResponseSink,
} from '../../../src/proxy/h1/response-reader.ts';

type Reading = {
  interims: number[];
  status: number | undefined;
  framing: string | undefined;
  body: string;
  done: number | undefined;
  error: string | undefined;
};

function read(method: string, pieces: readonly (string | Buffer)[], ends = false): Reading {
  const reading: Reading = {
    interims: [],
    status: undefined,
    framing: undefined,
    body: '',
    done: undefined,
    error: undefined,
  };
  const sink: ResponseSink = {
    onInterim: ({ status }) => void reading.interims.push(status),
    onHead(head, framing) {
      reading.status = head.status;
      reading.framing = framing.kind;
      return head.status === 101 ? 'connection' : 'head';
    },
    onBody: (piece) => void (reading.body += piece.toString('latin1')),
    onDone(rest) {
      expect(reading.done).toBeUndefined();
      reading.done = rest;
    },
    onError(code) {
      expect(reading.error).toBeUndefined();
      reading.error = code;
    },
  };
  const reader = new ResponseReader(
    method,
    { maxHeadBytes: 32_768, maxFields: 100, maxTargetBytes: 8_192 },
    sink,
  );
  for (const piece of pieces) reader.push(Buffer.from(piece as string, 'latin1'));
  if (ends) reader.end();
  return reading;
}

const LIMITS = { maxHeadBytes: 1_000, maxFields: 10, maxTargetBytes: 10 };
const ok = 'HTTP/1.1 200 OK\r\n';

describe('a response', () => {
  const rows: readonly (readonly [string, string, string, boolean, Partial<Reading>])[] = [
    ['with a length', 'GET', `${ok}Content-Length: 3\r\n\r\nabc`, false, { body: 'abc', done: 0 }],
    ['with length 0', 'GET', `${ok}Content-Length: 0\r\n\r\n`, false, { body: '', done: 0 }],
    [
      'with bytes behind it',
      'GET',
      `${ok}Content-Length: 3\r\n\r\nabcHTTP/1.1 200`,
      false,
      { body: 'abc', done: 12 },
    ],
    ['with bytes behind its head', 'GET', `${ok}Content-Length: 0\r\n\r\nx`, false, { body: '', done: 1 }],
    [
      'chunked',
      'GET',
      `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
      false,
      { body: '3\r\nabc\r\n0\r\n\r\n', done: 0 },
    ],
    [
      'chunked with extension and trailer',
      'GET',
      `${ok}Transfer-Encoding: chunked\r\n\r\n003;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n`,
      false,
      { body: '3\r\nabc\r\n0\r\n\r\n', done: 0 },
    ],
    [
      'chunked with bytes behind it',
      'GET',
      `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nxyz`,
      false,
      { done: 3 },
    ],
    ['until the host closes', 'GET', `${ok}\r\nabc`, true, { framing: 'until_close', body: 'abc', done: 0 }],
    ['to HEAD with a length', 'HEAD', `${ok}Content-Length: 3\r\n\r\n`, false, { framing: 'none', done: 0 }],
    [
      'to HEAD with a body all the same',
      'HEAD',
      `${ok}Content-Length: 3\r\n\r\nabc`,
      false,
      { body: '', done: 3 },
    ],
    ['204', 'GET', 'HTTP/1.1 204 No Content\r\n\r\n', false, { done: 0 }],
    ['204 with a body', 'GET', 'HTTP/1.1 204 No Content\r\n\r\nabc', false, { body: '', done: 3 }],
    [
      '304 with a length',
      'GET',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n',
      false,
      { body: '', done: 0 },
    ],
    [
      'behind interim ones',
      'GET',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n${ok}Content-Length: 0\r\n\r\n`,
      false,
      { interims: [100, 103], status: 200, done: 0 },
    ],
    [
      '101',
      'GET',
      'HTTP/1.1 101 Switching Protocols\r\n\r\nframes',
      false,
      { status: 101, done: undefined, body: '' },
    ],
    ['on HTTP/1.0', 'GET', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na', false, { body: 'a', done: 0 }],
    ['without a reason', 'GET', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', false, { done: 0 }],
  ];
  it.each(rows)('%s', (_, method, bytes, ends, expected) => {
    const whole = read(method, [bytes], ends);
    expect(whole).toMatchObject({ error: undefined, ...expected });
    const bytewise = read(method, bytes.split(''), ends);
    // Byte by byte the head comes before what follows it, so only what is behind it differs: it has not come yet.
    expect({ ...bytewise, done: whole.done }).toEqual(whole);
  });

  it('is the same over any split', () => {
    const bytes = `HTTP/1.1 103 Early\r\n\r\n${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n01\r\n!\r\n0\r\n\r\n`;
    const whole = read('GET', [bytes]);
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const pieces = at.slice(1).map((end, i) => bytes.slice(at[i], end));
        expect(
          read(
            'GET',
            pieces.filter((piece) => piece !== ''),
          ),
        ).toEqual(whole);
      }),
    );
  });

  it.each([
    ['head and body in one piece', `${ok}Content-Length: 3\r\n\r\nabc`, true],
    ['a length of 0', `${ok}Content-Length: 0\r\n\r\n`, true],
    ['a part of the body', `${ok}Content-Length: 3\r\n\r\nab`, false],
    ['bytes behind the body', `${ok}Content-Length: 3\r\n\r\nabcd`, false],
    ['an interim head before it', `HTTP/1.1 103 X\r\n\r\n${ok}Content-Length: 3\r\n\r\nabc`, false],
    ['chunks', `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, false],
    ['no framing', `${ok}\r\nabc`, false],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', true],
    ['bytes behind no body', 'HTTP/1.1 204 No Content\r\n\r\na', false],
  ])('is whole or not: %s', (_, text, expected) => {
    const seen: unknown[] = [];
    const sink: ResponseSink = {
      onInterim: () => {},
      onHead(head, framing) {
        seen.push(holdsWholeMessage(head, framing));
        return 'connection';
      },
      onBody: () => {},
      onDone: () => {},
      onError: (code) => seen.push(code),
    };
    new ResponseReader('GET', LIMITS, sink).push(Buffer.from(text));
    expect(seen).toEqual([expected]);
  });

  it('that was taken as a whole is done, and its body does not come again', () => {
    const seen: unknown[] = [];
    const sink: ResponseSink = {
      onInterim: () => {},
      onHead: () => 'message',
      onBody: () => seen.push('body'),
      onDone: (rest) => seen.push(rest),
      onError: (code) => seen.push(code),
    };
    const reader = new ResponseReader('GET', LIMITS, sink);
    reader.push(Buffer.from(`${ok}Content-Length: 3\r\n\r\nabc`));
    reader.push(Buffer.from('more'));
    reader.end();
    expect([seen, reader.rest]).toEqual([[0], undefined]);
  });

  it('whose connection was taken leaves the bytes behind its head to the taker', () => {
    const heads: string[] = [];
    const reader = new ResponseReader(
      'GET',
      { maxHeadBytes: 1_000, maxFields: 10, maxTargetBytes: 10 },
      {
        onInterim: () => {},
        onHead: (head) => (heads.push(fieldValue(head, 0)), 'connection'),
        onBody: () => heads.push('body'),
        onDone: () => heads.push('done'),
        onError: () => heads.push('error'),
      },
    );
    reader.push(Buffer.from('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nframes'));
    reader.push(Buffer.from('more'));
    reader.end();
    expect(heads).toEqual(['websocket']);
    expect(reader.rest?.toString()).toBe('frames');
  });
});

describe('an invalid response', () => {
  const twenty = 'HTTP/1.1 103 Early\r\n\r\n'.repeat(20);
  const rows: readonly (readonly [string, string, boolean, string])[] = [
    ['nothing at all', '', true, 'no_response'],
    ['half a head', 'HTTP/1.1 200 OK\r\nConte', true, 'no_response'],
    ['an interim one alone', 'HTTP/1.1 100 Continue\r\n\r\n', true, 'no_response'],
    ['a body cut short', `${ok}Content-Length: 5\r\n\r\nabc`, true, 'truncated'],
    ['chunks cut short', `${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nabc`, true, 'truncated'],
    ['chunks without the last', `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`, true, 'truncated'],
    [
      'length and coding',
      `${ok}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
      false,
      'length_and_encoding',
    ],
    ['two lengths', `${ok}Content-Length: 5\r\nContent-Length: 5\r\n\r\n`, false, 'content_length_repeated'],
    ['a list of lengths', `${ok}Content-Length: 5, 6\r\n\r\n`, false, 'content_length_malformed'],
    [
      'a coding besides chunked',
      `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`,
      false,
      'transfer_encoding_unsupported',
    ],
    [
      'a coding on HTTP/1.0',
      'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      false,
      'transfer_encoding_unexpected',
    ],
    ['status 099', 'HTTP/1.1 099 X\r\n\r\n', false, 'status_malformed'],
    ['status 600', 'HTTP/1.1 600 X\r\n\r\n', false, 'status_malformed'],
    ['HTTP/2.0', 'HTTP/2.0 200 OK\r\n\r\n', false, 'version_unsupported'],
    ['no HTTP', '<html>hello</html>', false, 'version_malformed'],
    ['a bare LF', 'HTTP/1.1 200 OK\nX: y\n\n', false, 'bare_lf'],
    ['a folded line', `${ok}X: a\r\n b\r\n\r\n`, false, 'line_folded'],
    [
      '100 that frames a body',
      `HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n`,
      false,
      'content_length_unexpected',
    ],
    [
      '204 with a length',
      'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n',
      false,
      'content_length_unexpected',
    ],
    ['an odd chunk size', `${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, false, 'chunk_size_malformed'],
    ['a head beyond 32 KiB', `${ok}X: ${'a'.repeat(32_768)}\r\n\r\n`, false, 'head_too_large'],
    ['101 fields', `${ok}${'A: b\r\n'.repeat(101)}\r\n`, false, 'too_many_fields'],
    ['21 interim ones', `${twenty}HTTP/1.1 103 Early\r\n\r\n`, false, 'too_many_interim_responses'],
    [
      'interim ones beyond 64 KiB',
      `HTTP/1.1 103 Early\r\nX: ${'a'.repeat(22_000)}\r\n\r\n`.repeat(3),
      false,
      'too_many_interim_responses',
    ],
  ];
  it.each(rows)('%s', (_, bytes, ends, error) => {
    expect(read('GET', bytes === '' ? [] : [bytes], ends)).toMatchObject({ error, done: undefined });
  });

  it('follows twenty interim responses, which are forwarded', () => {
    const reading = read('GET', [`${twenty}${ok}Content-Length: 0\r\n\r\n`]);
    expect([reading.interims.length, reading.status]).toEqual([20, 200]);
  });

  it('is reported once, and what comes later changes nothing', () => {
    const reading = read('GET', [`HTTP/1.1 099 X\r\n\r\n`, `${ok}Content-Length: 0\r\n\r\n`], true);
    expect(reading).toMatchObject({ error: 'status_malformed', status: undefined, done: undefined });
  });
});

it('a reader knows whether a byte of the response has come', () => {
  const sink: ResponseSink = { onInterim() {}, onHead: () => 'head', onBody() {}, onDone() {}, onError() {} };
  const reader = new ResponseReader('GET', { maxHeadBytes: 1_000, maxFields: 10, maxTargetBytes: 10 }, sink);
  expect(reader.hasStarted).toBe(false);
  reader.push(Buffer.from('H'));
  expect(reader.hasStarted).toBe(true);
});
