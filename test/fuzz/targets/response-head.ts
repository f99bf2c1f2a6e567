// Fuzz target: a response's head is accepted when a second, simple reader accepts it, with the same parts and the same body;
// more bytes never change what was decided. Input: the bytes of one response to a GET.
import assert from 'node:assert/strict';
import { isHeadError } from '../../../src/http1/head-error.ts';
import { responseFraming } from '../../../src/http1/framing.ts';
import { parseResponseHead, type ResponseHead } from '../../../src/http1/head-parser.ts';
import { assertPrefixes, fieldsOf, fuzzLimits, hasTabBesideFraming } from '../parsed-head.ts';
import { readFraming, readHead, type SimpleHead } from '../simple-head.ts';

const START = /^HTTP\/1\.[01] [1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?$/;

export function fuzz(data: Buffer): void {
  const head = parseResponseHead(data, 0, fuzzLimits);
  assertPrefixes(data, head, (bytes) => parseResponseHead(bytes, 0, fuzzLimits));
  const simple = readHead(data.toString('latin1'), START);
  if (head !== undefined && !isHeadError(head)) assertSame(head, simple);
  else assert(simple === undefined, `refused, and a second reader accepts it: ${head?.code}`);
}

function assertSame(head: ResponseHead, simple: SimpleHead | undefined): void {
  assert(simple !== undefined, 'accepted, and a second reader refuses it');
  assert.equal(`HTTP/1.${head.minor} ${head.status}`, simple.start.slice(0, 12));
  assert.equal(head.end, simple.length);
  assert.deepEqual(fieldsOf(head), simple.fields);
  if (hasTabBesideFraming(head) || head.status < 200 || head.status === 204) return;
  const framing = responseFraming(head, 'GET');
  const written = isHeadError(framing)
    ? 'error'
    : framing.kind === 'length'
      ? `length ${framing.length}`
      : framing.kind;
  const claim = readFraming(simple.fields, head.minor);
  assert.equal(written, expectedOf(simple, claim, head.status));
}

function expectedOf({ fields }: SimpleHead, claim: string, status: number): string {
  if (claim === 'error' || status !== 304) {
    const isClaimed = fields.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
    return isClaimed ? claim : 'until_close';
  }
  return 'none';
}
