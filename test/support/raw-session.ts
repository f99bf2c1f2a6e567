// The TLS session as OpenSSL knows it, to be offered to any server. Node puts the proven server name in front of a session,
// and its client offers it to no other name: a test of what a server refuses must offer it all the same.
import type { ConnectionOptions } from 'node:tls';

const SEQUENCE = 0x30;
const TWO_LENGTH_BYTES = 0x82;

/** Offers `session` whatever the server's name. Node offers such a session only if nothing is verified. */
export function offerAnywhere(session: Buffer): ConnectionOptions {
  return { session: rawSession(session), rejectUnauthorized: false };
}

/** The ASN.1 structure that fills the rest of `session`. */
function rawSession(session: Buffer): Buffer {
  for (let at = 0; at + 4 < session.length; at += 1) {
    const isStart = session[at] === SEQUENCE && session[at + 1] === TWO_LENGTH_BYTES;
    if (isStart && session.readUInt16BE(at + 2) === session.length - at - 4) return session.subarray(at);
  }
  throw new Error('the session of the client is not the structure that OpenSSL writes');
}
