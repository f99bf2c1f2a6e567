// Reads and checks the responses on one connection. A response that equals the last checked one to the same request byte for
// byte is not parsed again: that keeps the load client cheap and the check exact.
import { idOf } from './heads.ts';

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Takes the bytes of a connection, and which request they respond to; returns true when they complete the response. Anything
 * but a 200 is an error, and a response that does not repeat the id of its request.
 */
export function createResponseReader(
  ids: readonly (string | undefined)[] = [],
): (chunk: Buffer, request?: number) => boolean {
  const checked: Buffer[] = [];
  const none: Buffer = Buffer.alloc(0);
  /** How many bytes of the checked response have been received again. */
  let matched = 0;
  let unread: Buffer = none;

  return (chunk, request = 0) => {
    const known = checked[request] ?? none;
    if (unread.length === 0) {
      const end = matched + chunk.length;
      if (end <= known.length && known.compare(chunk, 0, chunk.length, matched, end) === 0) {
        matched = end === known.length ? 0 : end;
        return matched === 0;
      }
    }
    unread = Buffer.concat([known.subarray(0, matched), unread, chunk]);
    matched = 0;
    const length = responseLength(unread, ids[request]);
    if (length === undefined || unread.length < length) return false;
    if (unread.length > length) throw new Error('received more bytes than one response');
    checked[request] = unread;
    unread = none;
    return true;
  };
}

/** The length of the response at the start of the bytes; undefined while its head is incomplete. */
function responseLength(bytes: Buffer, id: string | undefined): number | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  if (!head.startsWith('HTTP/1.1 200 '))
    throw new Error(`a response was ${bytes.toString('latin1', 0, 400)}`);
  if (id !== undefined && idOf(head) !== id) throw new Error(`a response to ${id} has another id:\n${head}`);
  const [, length] = /^content-length: *(\d+) *$/im.exec(head) ?? [];
  if (length === undefined) throw new Error(`a response has no Content-Length:\n${head}`);
  return headEnd + HEAD_END.length + Number(length);
}
