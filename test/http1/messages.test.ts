// The fixture rows, read as whole messages: head, framing, connection fields and chunks together.
import { describe, expect, it } from 'vitest';
import { isHeadError } from '../../src/http1/head-error.ts';
import { parseRequestHead, parseResponseHead } from '../../src/http1/head-parser.ts';
import { limits } from './arbitraries.ts';
import { requestRows } from './fixtures/requests.ts';
import { responseRows } from './fixtures/responses.ts';
import { readRequests, readResponse } from './message-reading.ts';
import type { Reading } from './node-oracle.ts';

describe('requests', () => {
  it.each(requestRows)('$name', ({ wire, verdict }) => {
    expect(verdictOf(readRequests(Buffer.from(wire, 'latin1')))).toBe(verdict);
  });
});

describe('responses', () => {
  it.each(responseRows)('$name', ({ wire, verdict, method }) => {
    expect(verdictOf(readResponse(Buffer.from(wire, 'latin1'), method))).toBe(verdict);
  });
});

describe('a head that arrives byte by byte', () => {
  // An error is reported with the byte that shows it, or with one more: a CR waits for its LF.
  it.each(requestRows)('request: $name', ({ wire }) => expectSteady(wire, parseRequestHead));
  it.each(responseRows)('response: $name', ({ wire }) => expectSteady(wire, parseResponseHead));
});

/** Once a prefix has a result, every longer one has the same. */
function expectSteady(wire: string, parse: typeof parseRequestHead | typeof parseResponseHead): void {
  const bytes = Buffer.from(wire.slice(0, 2000), 'latin1');
  const verdicts = Array.from({ length: bytes.length + 1 }, (_, length) => {
    const head = parse(bytes.subarray(0, length), 0, limits);
    return head === undefined ? 'more' : isHeadError(head) ? head.code : `head of ${head.end}`;
  });
  const first = verdicts.findIndex((verdict) => verdict !== 'more');
  expect(new Set(first === -1 ? [] : verdicts.slice(first)).size).toBeLessThan(2);
}

function verdictOf({ error }: Reading): string {
  return error === undefined || error === 'closed' ? 'accepted' : error;
}
