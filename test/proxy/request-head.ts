// Request heads from text, for the tests of what is decided on a head alone.
import { isHeadError } from '../../src/http1/head-error.ts';
import { type RequestHead, parseRequestHead } from '../../src/http1/head-parser.ts';
import { type Authority, parseAuthority } from '../../src/policy/authority/authority.ts';

/** The head of these lines; throws where the parser itself would refuse them. */
export function requestHead(...lines: string[]): RequestHead {
  const bytes = Buffer.from([...lines, '', ''].join('\r\n'), 'latin1');
  const head = parseRequestHead(bytes, 0, { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 8_192 });
  if (head === undefined || isHeadError(head)) throw new Error(`${lines[0]}: ${head?.code ?? 'incomplete'}`);
  return head;
}

export function authorityOf(text: string): Authority {
  const authority = parseAuthority(text);
  if (typeof authority === 'string') throw new Error(`${text}: ${authority}`);
  return authority;
}
