// Reads the JSON of a frame as a message: its type, and the members that every message of that type has. What is inside of
// parameters and values is checked by the method that they belong to.
import { ProtocolError } from './frame.ts';
import { MAX_SMALL_FRAME_BYTES, type Message } from './messages.ts';
import { anyOf, type Check, isCount, isObject, isPresent, isText } from './shape.ts';
import { listOf, oneOf, optional, recordOf, shapeOf } from './shape.ts';

const isStatus: Check = (value) => isCount(value) && Number(value) >= 100 && Number(value) <= 599;
const isReason = oneOf('interrupt', 'rollback', 'timeout', 'lost');
const isFailure = anyOf(
  shapeOf({
    kind: oneOf('thrown'),
    error: isText,
    message: isText,
    status: optional(isStatus),
    headers: optional(recordOf(isText)),
  }),
  shapeOf({ kind: oneOf('cancelled'), reason: isReason }),
  shapeOf({ kind: oneOf('refused'), code: oneOf('not_found', 'invalid', 'unsupported'), message: isText }),
);
const of = optional(isCount);

/** The members of each type. */
export const MESSAGE_MEMBERS: Readonly<Record<Message['type'], Readonly<Record<string, Check>>>> = {
  hello: { version: isCount, language: optional(isText), pid: optional(isCount) },
  load: { deployment: isObject },
  ready: {
    loaded: shapeOf({ library: isText, hasAuth: oneOf(true, false), hasApp: oneOf(true, false) }),
  },
  failed: { failure: shapeOf({ key: isText, message: isText }) },
  call: { id: isCount, method: isText, params: isObject, of },
  result: { id: isCount, value: isPresent },
  error: { id: isCount, error: isFailure },
  events: { id: isCount, events: listOf(shapeOf({ event: isText, data: isText })) },
  data: { id: isCount, base64: isText, isLast: optional(oneOf(true)) },
  credit: { id: isCount, bytes: (value) => isCount(value) && value !== 0 },
  cancel: { id: isCount, reason: isReason },
  ping: { sequence: isCount },
  pong: { sequence: isCount },
  log: { level: oneOf('debug', 'info', 'warn', 'error'), message: isText, of },
};

/** How a large message begins. It is looked at first, because parsing what is large takes long. */
const LARGE = /^\s*\{\s*"type"\s*:\s*"(?:load|call|result|error|events|data)"/;
const BEGINNING_BYTES = 256;

/** Members that it does not know pass. Throws a ProtocolError. */
export function parseMessage(payload: Buffer): Message {
  const isSmall = payload.length <= MAX_SMALL_FRAME_BYTES;
  if (!isSmall && !LARGE.test(payload.toString('latin1', 0, BEGINNING_BYTES)))
    throw new ProtocolError('a large frame that does not begin with the type of a message that may be large');
  let message: unknown;
  try {
    message = JSON.parse(payload.toString('utf8'));
  } catch {
    throw new ProtocolError('a frame that is not JSON');
  }
  if (!isObject(message)) throw new ProtocolError('a frame that is not an object');
  const { type } = message;
  if (typeof type !== 'string' || !Object.hasOwn(MESSAGE_MEMBERS, type))
    throw new ProtocolError('a message of an unknown type');
  for (const [name, check] of Object.entries(MESSAGE_MEMBERS[type as Message['type']]))
    if (!check(message[name])) throw new ProtocolError(`a message ${type} with invalid ${name}`);
  return message as Message;
}
