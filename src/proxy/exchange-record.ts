// What the record of an exchange says of its request and of the gate's answer.
import type { ConnectionScope } from './client-connection.ts';
import type { Passage } from './inject.ts';
import { type ExchangeRecord, recordedPath } from './record.ts';
import type { RequestPlan } from './request-plan.ts';

export function beginRecord(
  { context, clientAddress: client }: ConnectionScope,
  revision: number,
  { head, target, scheme }: RequestPlan,
): ExchangeRecord {
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
  };
}

export function notePassage(record: ExchangeRecord, { rule, callback, isCached, reason }: Passage): void {
  if (rule !== undefined) record.rule = rule;
  if (callback !== undefined) record.callback = callback;
  if (isCached !== undefined) record.callback_cached = isCached;
  if (reason !== undefined) record.reason = reason;
}
