// Reads whole connections with our parser, framing and walker, in the shape in which the oracle of node:http
// reports its own reading. Bodies are decoded by a reference of its own that admits canonical chunks only.
import { ChunkWalker } from '../../src/http1/chunk-walker.ts';
import { type ConnectionFields, readConnectionFields } from '../../src/http1/connection-fields.ts';
import { expectsContinue } from '../../src/http1/expect.ts';
import { type HeadError, isHeadError } from '../../src/http1/head-error.ts';
import { type Framing, requestFraming, responseFraming } from '../../src/http1/framing.ts';
import {
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '../../src/http1/head-parser.ts';
import { limits } from './arbitraries.ts';
import type { Message, Reading } from './node-oracle.ts';
import { fieldTexts } from './parsed-head.ts';

type Body = { readonly text: string; readonly end: number; readonly error: string | undefined };

/** Requests of one connection up to the first error, to `incomplete`, or to `closed`: nothing more is read. */
export function readRequests(bytes: Buffer): Reading {
  const reading: Reading = { messages: [], error: undefined };
  for (let at = 0; at < bytes.length; ) {
    const head = parseRequestHead(bytes, at, limits);
    if (head === undefined) return { ...reading, error: 'incomplete' };
    if (isHeadError(head)) return { ...reading, error: head.code };
    const framing = requestFraming(head);
    const connection = readConnectionFields(head);
    const error = firstError([framing, connection, expectsContinue(head)]);
    if (error !== undefined || isHeadError(framing) || isHeadError(connection))
      return { ...reading, error: error?.code };

    const target = bytes.toString('latin1', head.targetStart, head.targetEnd);
    const end = addMessage(reading, head, `${head.method} ${target}`, framing);
    if (end === undefined) return reading;
    // After CONNECT or an upgrade the response decides what the next bytes are.
    const isLast = head.method === 'CONNECT' || connection.upgrade || !isPersistent(head, connection);
    if (isLast) return { ...reading, error: 'closed' };
    at = end;
  }
  return reading;
}

/** Interim responses and the final one, as the whole of a connection that closes after these bytes. */
export function readResponse(bytes: Buffer, requestMethod: string): Reading {
  const reading: Reading = { messages: [], error: undefined };
  for (let at = 0; ; ) {
    const head = parseResponseHead(bytes, at, limits);
    if (head === undefined) return { ...reading, error: 'incomplete' };
    if (isHeadError(head)) return { ...reading, error: head.code };
    const framing = responseFraming(head, requestMethod);
    const error = firstError([framing, readConnectionFields(head)]);
    if (error !== undefined || isHeadError(framing)) return { ...reading, error: error?.code };

    const end = addMessage(reading, head, `${head.status}`, framing);
    const isFinal = head.status >= 200 || head.status === 101;
    if (end === undefined || isFinal) return reading;
    at = end;
  }
}

/** Decodes a body of canonical chunks and nothing else; throws on any byte that is not canonical. */
export function decodeCanonical(text: string): string {
  let data = '';
  for (let at = 0; ; ) {
    const [head = '', digits = ''] = /^(0|[1-9a-fA-F][0-9a-fA-F]*)\r\n/.exec(text.slice(at, at + 18)) ?? [];
    const start = at + head.length;
    const size = Number.parseInt(digits, 16);
    const next = start + size + 2;
    if (head === '' || text.slice(next - 2, next) !== '\r\n') throw new Error(`not canonical at ${at}`);
    if (size === 0 && next === text.length) return data;
    if (size === 0) throw new Error('bytes after the last chunk');
    data += text.slice(start, start + size);
    at = next;
  }
}

function addMessage(
  reading: Reading,
  head: RequestHead | ResponseHead,
  start: string,
  framing: Framing,
): number | undefined {
  const message: Message = { start, fields: fieldTexts(head), body: '', complete: false };
  reading.messages.push(message);
  const body = readBody(head, framing);
  reading.error = body.error;
  if (body.error !== undefined) return undefined;
  message.body = body.text;
  message.complete = true;
  return body.end;
}

function readBody(head: RequestHead | ResponseHead, framing: Framing): Body {
  const { bytes, end: start } = head;
  if (framing.kind === 'chunked') return readChunks(bytes, start, 'method' in head ? 'request' : 'response');
  const rest = bytes.length - start;
  const length = framing.kind === 'length' ? framing.length : framing.kind === 'none' ? 0 : rest;
  const error = length > rest ? 'incomplete' : undefined;
  return { text: bytes.toString('latin1', start, start + length), end: start + length, error };
}

function readChunks(bytes: Buffer, start: number, kind: 'request' | 'response'): Body {
  const walker = new ChunkWalker(kind);
  let emitted = '';
  const end = walker.walk(bytes, start, (piece) => {
    emitted += piece.toString('latin1');
  });
  const error = walker.error?.code ?? (walker.done ? undefined : 'incomplete');
  return { text: error === undefined ? decodeCanonical(emitted) : '', end, error };
}

function firstError(results: readonly unknown[]): HeadError | undefined {
  return results.find(isHeadError);
}

/** True if the connection stays open after this message (RFC 9112 §9.3). */
export function isPersistent(head: { readonly minor: 0 | 1 }, connection: ConnectionFields): boolean {
  return !connection.close && (head.minor === 1 || connection.keepAlive);
}
