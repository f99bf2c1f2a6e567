// Reads the answers on one connection and checks each of them. An answer that is byte for byte the last one that was
// checked needs no second reading: that keeps the load client cheap and the check exact.

const HEAD_END = Buffer.from('\r\n\r\n');

/** Feeds on the bytes of a connection; true when they complete an answer. Anything but a 200 is an error. */
export function createResponseReader(): (chunk: Buffer) => boolean {
  let known: Buffer = Buffer.alloc(0);
  /** How much of `known` has come again. */
  let matched = 0;
  let unread: Buffer = Buffer.alloc(0);

  return (chunk) => {
    if (unread.length === 0) {
      const end = matched + chunk.length;
      if (end <= known.length && known.compare(chunk, 0, chunk.length, matched, end) === 0) {
        matched = end === known.length ? 0 : end;
        return matched === 0;
      }
    }
    unread = Buffer.concat([known.subarray(0, matched), unread, chunk]);
    matched = 0;
    const length = responseLength(unread);
    if (length === undefined || unread.length < length) return false;
    if (unread.length > length) throw new Error('more bytes came than one answer');
    known = unread;
    unread = Buffer.alloc(0);
    return true;
  };
}

/** The length of the answer that begins the bytes; undefined while its head is incomplete. */
function responseLength(bytes: Buffer): number | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`an answer was ${bytes.toString('latin1', 0, 400)}`);
  const [, length] = /^content-length: *(\d+) *$/im.exec(head) ?? [];
  if (length === undefined) throw new Error(`an answer has no Content-Length:\n${head}`);
  return headEnd + HEAD_END.length + Number(length);
}
