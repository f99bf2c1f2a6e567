// Reads the beginning of what a PostgreSQL server sends, up to the first ReadyForQuery: its BackendKeyData is what a client presents to
// cancel a query. The server sends these messages; their lengths are bounded all the same.

export type KeyReader = {
  /** The key as soon as it was read, once. */
  read(chunk: Buffer): string | undefined;
  /** The client is authenticated, or the server sends what is no greeting: nothing more has to be read. */
  readonly isDone: boolean;
};

const HEAD_BYTES = 5;
const MAX_BYTES = 64 * 1024;
const BACKEND_KEY_DATA = 0x4b;
const READY_FOR_QUERY = 0x5a;
/** Process id, and a key of 4 bytes, or of up to 256 in protocol 3.2. */
const MAX_KEY_BYTES = 4 + 256;

export function createKeyReader(): KeyReader {
  let waiting = Buffer.alloc(0);
  let isDone = false;
  return {
    get isDone() {
      return isDone;
    },
    read(chunk) {
      if (isDone) return undefined;
      waiting = Buffer.concat([waiting, chunk]);
      let key: string | undefined;
      for (;;) {
        const message = takeMessage(waiting);
        isDone = message === 'too long' || (message !== undefined && message.type === READY_FOR_QUERY);
        if (message === undefined || message === 'too long') break;
        waiting = waiting.subarray(message.length);
        const isKey = message.type === BACKEND_KEY_DATA && message.body.length <= MAX_KEY_BYTES;
        if (isKey) key = message.body.toString('hex');
        if (isDone) break;
      }
      if (isDone) waiting = Buffer.alloc(0);
      return key;
    },
  };
}

type Message = { readonly type: number; readonly body: Buffer; readonly length: number };

/** Undefined: more bytes are needed. */
function takeMessage(bytes: Buffer): Message | 'too long' | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const length = 1 + bytes.readUInt32BE(1);
  if (length < HEAD_BYTES || length > MAX_BYTES) return 'too long';
  if (bytes.length < length) return undefined;
  return { type: bytes.readUInt8(0), body: bytes.subarray(HEAD_BYTES, length), length };
}
