// What a call that threw is reported as: cancelled, refused, or an error of the deployment with its class and its message.
import { CallCancelled, Refusal } from './method.ts';
import { FrameTooLarge } from './protocol/frame.ts';
import type { CallFailure, ThrownError } from './protocol/messages.ts';

/** Of a message that clients see. */
const MAX_MESSAGE_CHARS = 64 * 1024;

/** `isHandler`: of a call to an authentication handler, which chooses a response by what it throws. */
export function toFailure(error: unknown, signal: AbortSignal, isHandler: boolean): CallFailure {
  // What a graph throws because it was cancelled is no error of it.
  if (signal.aborted && signal.reason instanceof CallCancelled)
    return { kind: 'cancelled', reason: signal.reason.reason };
  if (error instanceof Refusal) return { kind: 'refused', code: error.code, message: error.message };
  if (error instanceof FrameTooLarge) return { kind: 'refused', code: 'invalid', message: error.message };
  return { kind: 'thrown', ...toThrown(error), ...(isHandler && toResponse(error)) };
}

/** Code may throw anything. */
export function toThrown(error: unknown): ThrownError {
  if (!isObject(error)) return { error: 'Error', message: clip(String(error)) };
  const { name, message } = error;
  // `name` of a class that does not set it is that of the class it extends.
  const ownName = error.constructor === undefined ? undefined : error.constructor.name;
  const isPlain = typeof name !== 'string' || name === 'Error';
  return {
    error: clip((isPlain ? ownName : name) || 'Error'),
    message: clip(typeof message === 'string' ? message : ''),
  };
}

/**
 * Of an HTTPException of the SDK alone. Errors of HTTP clients have a status and fields too: those of a server that the handler
 * has asked, which are not for its caller.
 */
function toResponse(error: unknown): { status?: number; headers?: Readonly<Record<string, string>> } {
  if (!isObject(error) || !isOfClass(error, 'HTTPException')) return {};
  const { status, headers } = error;
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return {};
  if (!isObject(headers)) return {};
  return { status, headers: toFields(headers) };
}

/** By the name: the class is of the packages of the deployment. */
function isOfClass(error: object, name: string): boolean {
  for (let one: unknown = Object.getPrototypeOf(error); isObject(one); one = Object.getPrototypeOf(one))
    if (one.constructor?.name === name) return true;
  return false;
}

function toFields(headers: object): Readonly<Record<string, string>> {
  const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}

type Thrown = {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly status?: unknown;
  readonly headers?: unknown;
  readonly constructor?: { readonly name: string };
};

function isObject(value: unknown): value is Thrown {
  return typeof value === 'object' && value !== null;
}

function clip(text: string): string {
  return text.length > MAX_MESSAGE_CHARS ? `${text.slice(0, MAX_MESSAGE_CHARS)}…` : text;
}
