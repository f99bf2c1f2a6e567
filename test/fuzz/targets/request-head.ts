// Fuzz target: a request head is accepted when a second, simple reader accepts it, with the same parts and the same body;
// more bytes never change what was decided. Input: the bytes of one request.
import assert from 'node:assert/strict';
import { isHeadError } from '../../../src/http1/head-error.ts';
import { requestFraming } from '../../../src/http1/framing.ts';
import { parseRequestHead, type RequestHead } from '../../../src/http1/head-parser.ts';
import { assertPrefixes, fieldsOf, fuzzLimits, hasTabBesideFraming } from '../parsed-head.ts';
import { readFraming, readHead, type SimpleHead } from '../simple-head.ts';

// PRI is the method of HTTP/2's preface alone (RFC 9113 §11.6).
const START = /^(?!PRI )[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32} [!$-;=?-~]+ HTTP\/1\.[01]$/;

export function fuzz(data: Buffer): void {
  const head = parseRequestHead(data, 0, fuzzLimits);
  assertPrefixes(data, head, (bytes) => parseRequestHead(bytes, 0, fuzzLimits));
  const text = data.toString('latin1');
  const skipped = text.startsWith('\r\n') ? 2 : 0;
  const simple = readHead(text.slice(skipped), START);
  if (head !== undefined && !isHeadError(head)) assertSame(head, simple, skipped);
  else assert(simple === undefined, `refused, and a second reader accepts it: ${head?.code}`);
}

function assertSame(head: RequestHead, simple: SimpleHead | undefined, skipped: number): void {
  assert(simple !== undefined, 'accepted, and a second reader refuses it');
  const target = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  assert.equal(`${head.method} ${target} HTTP/1.${head.minor}`, simple.start);
  assert.equal(head.end, skipped + simple.length);
  assert.deepEqual(fieldsOf(head), simple.fields);
  if (hasTabBesideFraming(head)) return;
  const framing = requestFraming(head);
  const written = isHeadError(framing)
    ? 'error'
    : framing.kind === 'length'
      ? `length ${framing.length}`
      : framing.kind;
  const expected = readFraming(simple.fields, head.minor);
  assert.equal(written, head.method === 'CONNECT' && expected !== 'none' ? 'error' : expected);
}
