// The first message of a PostgreSQL client, which is the only one without a type: it asks for encryption, cancels a query of another
// connection, or names the user and the database. Pure; PostgreSQL's documentation, "Frontend/Backend Protocol", message formats.

export type FirstMessage =
  /** More bytes are needed. */
  | { readonly kind: 'incomplete' }
  /** The response is `N`: the connection goes on without encryption. */
  | { readonly kind: 'encryption'; readonly length: number }
  | { readonly kind: 'cancel'; readonly key: string; readonly length: number }
  | { readonly kind: 'startup'; readonly startup: Startup; readonly length: number }
  | { readonly kind: 'invalid'; readonly reason: string };

export type Startup = {
  /** Of the protocol 3. */
  readonly minorVersion: number;
  readonly parameters: ReadonlyMap<string, string>;
};

/** What the server takes (MAX_STARTUP_PACKET_LENGTH). */
const MAX_BYTES = 10_000;
const HEAD_BYTES = 8;

const CANCEL = 80_877_102;
const SSL = 80_877_103;
const GSS = 80_877_104;

export function parseFirstMessage(bytes: Buffer): FirstMessage {
  if (bytes.length < 4) return { kind: 'incomplete' };
  const length = bytes.readUInt32BE(0);
  if (length < HEAD_BYTES || length > MAX_BYTES) return invalid('its length is not that of a first message');
  if (bytes.length < length) return { kind: 'incomplete' };
  const code = bytes.readUInt32BE(4);
  const body = bytes.subarray(HEAD_BYTES, length);
  if (code === SSL || code === GSS)
    return body.length === 0
      ? { kind: 'encryption', length }
      : invalid('a request for encryption has no body');
  if (code === CANCEL)
    return body.length < 4 || body.length > 4 + 256
      ? invalid('a cancellation has a process id and a key')
      : { kind: 'cancel', key: body.toString('hex'), length };
  if (code >>> 16 !== 3) return invalid('the protocol must be version 3');
  const parameters = parseParameters(body);
  if (typeof parameters === 'string') return invalid(parameters);
  return { kind: 'startup', length, startup: { minorVersion: code & 0xffff, parameters } };
}

function invalid(reason: string): FirstMessage {
  return { kind: 'invalid', reason };
}

/** Names and values, each ended by a zero byte, and one more at the end. A string says what is wrong. */
function parseParameters(body: Buffer): Map<string, string> | string {
  if (body.at(-1) !== 0) return 'the parameters must end with a zero byte';
  const texts = body.subarray(0, -1).toString('latin1').split('\0');
  // The last text is what follows the last zero byte: nothing.
  if (texts.pop() !== '' || texts.length % 2 !== 0) return 'a parameter has a name and a value';
  const parameters = new Map<string, string>();
  for (let at = 0; at < texts.length; at += 2) {
    const [name = '', value = ''] = texts.slice(at, at + 2);
    // Of two values the server takes the last one: what is checked must be what is sent.
    if (name === '' || parameters.has(name)) return 'a parameter must have a name, and only one value';
    parameters.set(name, value);
  }
  return parameters;
}

export function formatStartup({ minorVersion, parameters }: Startup): Buffer {
  const texts = [...parameters].flat().map((text) => `${text}\0`);
  const body = Buffer.from(`${texts.join('')}\0`, 'latin1');
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(HEAD_BYTES + body.length, 0);
  head.writeUInt32BE((3 << 16) | minorVersion, 4);
  return Buffer.concat([head, body]);
}

/** `key`: as `parseFirstMessage` gives it, and as it is in BackendKeyData. */
export function formatCancel(key: string): Buffer {
  const body = Buffer.from(key, 'hex');
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(HEAD_BYTES + body.length, 0);
  head.writeUInt32BE(CANCEL, 4);
  return Buffer.concat([head, body]);
}

/** By which a server refuses a connection; `code` is an SQLSTATE, `constraint` names what was broken. */
export function formatFatalError(code: string, message: string, constraint?: string): Buffer {
  const broken = constraint === undefined ? '' : `n${constraint}\0`;
  const fields = `SFATAL\0VFATAL\0C${code}\0M${message}\0${broken}\0`;
  const head = Buffer.from('E\0\0\0\0', 'latin1');
  head.writeUInt32BE(4 + Buffer.byteLength(fields), 1);
  return Buffer.concat([head, Buffer.from(fields, 'utf8')]);
}
