// What the record of an exchange says of its request, of the gate's decision, and of a client that left before the end.
import type { ConnectionScope, OpenConnection, ScopedClient } from '../context.ts';
import type { GateDecision } from './inject.ts';
import { type ExchangeRecord, RecordMemo, recordedPath } from '../record.ts';
import type { RequestPlan } from './request-plan.ts';

export function beginRecord(
  scope: ConnectionScope,
  revision: number,
  { head, target, scheme }: RequestPlan,
): ExchangeRecord {
  const { context, clientAddress: client } = scope;
  // Every field from the start: adding them one by one would change the hidden class of the object several times.
  return {
    sandbox: context.sandbox,
    revision,
    client,
    method: head.method,
    scheme,
    authority: target.authority.text,
    path: recordedPath(target.path),
    bytes_up: 0,
    bytes_down: 0,
    rule: undefined,
    callback: undefined,
    callback_cached: undefined,
    upstream_reused: undefined,
    injected: undefined,
    status: undefined,
    reason: undefined,
    cause: undefined,
    unframed: undefined,
    scrubbed: undefined,
    outcome: undefined,
    duration_ms: undefined,
    protocol: undefined,
    memo: memoOf(scope),
  };
}

function memoOf(scope: ConnectionScope): RecordMemo {
  const known = memos.get(scope);
  if (known) return known;
  const memo = new RecordMemo();
  memos.set(scope, memo);
  return memo;
}

// One for each connection, as long as the connection.
const memos = new WeakMap<ConnectionScope, RecordMemo>();

export function recordDecision(
  record: ExchangeRecord,
  { rule, callback, isCached, reason }: GateDecision,
): void {
  if (rule !== undefined) record.rule = rule;
  if (callback !== undefined) record.callback = callback;
  if (isCached !== undefined) record.callback_cached = isCached;
  if (reason !== undefined) record.reason = reason;
}

/** Why the client's connection is closed: the client ended or reset it, or the deadline of the drain closed it. */
export function clientEndReason({
  socket,
  scope,
}: Pick<OpenConnection, 'socket'> & Pick<ScopedClient, 'scope'>): 'client_gone' | 'shutting_down' {
  const isByClient = socket.readableEnded || socket.errored !== null;
  return scope.context.isDraining() && !isByClient ? 'shutting_down' : 'client_gone';
}
