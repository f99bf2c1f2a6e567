// Reads the JSON of a frame as a message: its type, and the members that every message of that type has. What is inside of
// parameters and values is checked by the method that they belong to.
import { ProtocolError } from './frame.ts';
import type { Message } from './messages.ts';

type Members = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

/** Ids, sequences and numbers of bytes. */
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isObject: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isPresent: Check = (value) => value !== undefined;
const isEvents: Check = (value) => Array.isArray(value) && value.every(isEvent);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

function isEvent(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { event, data } = value as Members;
  return isText(event) && isText(data);
}

function isFailure(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { kind, error, message, reason, code, status, headers } = value as Members;
  if (kind === 'cancelled') return REASON(reason);
  if (kind === 'refused') return CODE(code) && isText(message);
  if (kind !== 'thrown' || !isText(error) || !isText(message)) return false;
  return (
    optional((one) => isCount(one) && (one as number) >= 100 && (one as number) <= 599)(status) &&
    optional((one) => isObject(one) && Object.values(one as Members).every(isText))(headers)
  );
}

const REASON = oneOf('interrupt', 'rollback', 'timeout', 'lost');
const CODE = oneOf('not_found', 'invalid', 'unsupported');
const of = optional(isCount);

/** The members of each type. */
export const MESSAGE_MEMBERS: Readonly<Record<Message['type'], Readonly<Record<string, Check>>>> = {
  hello: { version: isCount, language: optional(isText), pid: optional(isCount) },
  load: { deployment: isObject },
  ready: { loaded: isObject },
  failed: { failure: isObject },
  call: { id: isCount, method: isText, params: isObject, of },
  result: { id: isCount, value: isPresent },
  error: { id: isCount, error: isFailure },
  events: { id: isCount, events: isEvents },
  data: { id: isCount, base64: isText, isLast: optional(oneOf(true)) },
  credit: { id: isCount, bytes: (value) => isCount(value) && value !== 0 },
  cancel: { id: isCount, reason: REASON },
  ping: { sequence: isCount },
  pong: { sequence: isCount },
  log: { level: oneOf('debug', 'info', 'warn', 'error'), message: isText, of },
};

/** Members that it does not know pass. Throws a ProtocolError. */
export function parseMessage(payload: Buffer): Message {
  let message: unknown;
  try {
    message = JSON.parse(payload.toString('utf8'));
  } catch {
    throw new ProtocolError('a frame that is not JSON');
  }
  if (!isObject(message)) throw new ProtocolError('a frame that is not an object');
  const { type } = message as Members;
  const members = typeof type === 'string' && Object.hasOwn(MESSAGE_MEMBERS, type) ? type : undefined;
  if (members === undefined) throw new ProtocolError('a message of an unknown type');
  for (const [name, check] of Object.entries(MESSAGE_MEMBERS[members as Message['type']]))
    if (!check((message as Members)[name]))
      throw new ProtocolError(`a message ${members} with invalid ${name}`);
  return message as Message;
}
