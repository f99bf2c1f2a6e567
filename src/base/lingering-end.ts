// Ends an answer whose request was not read to its end. A socket that is closed over unread bytes is reset, and a reset
// can overtake the answer: what still comes is thrown away for a while (RFC 9112 §9.6). It must not know what was asked.
import type { IncomingMessage, ServerResponse } from 'node:http';

const LINGER_MS = 500;
const LINGER_BYTES = 4 * 1024 * 1024;

/** To be called once everything of the answer is written. */
export function endLingering(incoming: IncomingMessage, outgoing: ServerResponse): void {
  let left = LINGER_BYTES;
  const end = (): void => void outgoing.end();
  const timer = setTimeout(end, LINGER_MS);
  outgoing.once('close', () => clearTimeout(timer));
  incoming.on('data', (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) end();
  });
  incoming.once('end', end);
  incoming.once('close', end);
  incoming.once('error', end);
  incoming.resume();
}
