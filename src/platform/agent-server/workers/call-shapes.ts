// The shapes of what workers send as results, and the methods that they may ask for. A worker runs code of the deployment, so
// that nothing of it is taken as it comes.
import type { ServerCalls, WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import {
  anyOf,
  type Check,
  isCount,
  isFlag,
  isObject,
  isText,
  listOf,
  oneOf,
  optional,
  shapeOf,
} from '../../../agent-worker/protocol/shape.ts';

const FIELDS = listOf((pair) => listOf(isText)(pair) && (pair as readonly string[]).length === 2);
const isStatus: Check = (value) => isCount(value) && Number(value) >= 200 && Number(value) <= 599;

export const RESULTS: { readonly [M in keyof WorkerCalls]: Check } = {
  'run.start': shapeOf({ status: oneOf('success', 'interrupted'), values: isText, interrupts: isText }),
  'state.get': isText,
  'state.history': isText,
  'state.update': shapeOf({ configurable: isObject, state: isText }),
  'graph.schemas': isText,
  'graph.drawing': isText,
  'auth.authenticate': shapeOf({
    identity: isText,
    display_name: isText,
    is_authenticated: isFlag,
    permissions: listOf(isText),
  }),
  'auth.authorize': anyOf(
    shapeOf({ isAllowed: oneOf(false) }),
    shapeOf({ isAllowed: oneOf(true), filter: optional(isObject), value: isObject }),
  ),
  'http.request': shapeOf({ status: isStatus, headers: FIELDS }),
};

/** Their parameters are checked by the port that serves them. */
export const SERVER_METHODS: { readonly [M in keyof ServerCalls]: true } = {
  'checkpoint.get': true,
  'checkpoint.list': true,
  'checkpoint.put': true,
  'checkpoint.put_writes': true,
  'checkpoint.put_all': true,
  'checkpoint.delete_thread': true,
  'checkpoint.copy_thread': true,
};

/** Throws a ProtocolError. */
export function checkResult(method: keyof WorkerCalls, value: unknown): void {
  if (!RESULTS[method](value)) throw new ProtocolError(`an invalid result of ${method}`);
}

export function isServerMethod(method: string): method is keyof ServerCalls {
  return Object.hasOwn(SERVER_METHODS, method);
}
