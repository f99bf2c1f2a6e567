// Heads for the tests of what is done with a head: parsed from text, or the test fails.
import { isHeadError } from '../../src/http1/head-error.ts';
import {
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '../../src/http1/head-parser.ts';
import { limits } from './arbitraries.ts';

export function requestOf(wire: string, start = 0): RequestHead {
  const head = parseRequestHead(Buffer.from(wire, 'latin1'), start, limits);
  if (head === undefined || isHeadError(head)) throw new Error(`no head: ${head?.code ?? 'incomplete'}`);
  return head;
}

export function responseOf(wire: string, start = 0): ResponseHead {
  const head = parseResponseHead(Buffer.from(wire, 'latin1'), start, limits);
  if (head === undefined || isHeadError(head)) throw new Error(`no head: ${head?.code ?? 'incomplete'}`);
  return head;
}

/** All fields as node's rawHeaders: names and values in turn. */
export function fieldTexts({ bytes, fields }: RequestHead | ResponseHead): string[] {
  return Array.from({ length: fields.count }, (_, i) => [
    bytes.toString('latin1', fields.nameStart(i), fields.nameEnd(i)),
    bytes.toString('latin1', fields.valueStart(i), fields.valueEnd(i)),
  ]).flat();
}
