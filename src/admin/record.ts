// The one record of each admin write, each refused one and each wrong token: allow-listed fields, never a value.
import type { AdminResponse } from './answer.ts';

export type AdminRecord = {
  readonly action: string;
  readonly sandbox?: string;
  readonly status: number;
  readonly outcome: 'done' | 'refused' | 'failed';
  readonly reason?: string;
  readonly revision?: number;
  readonly client?: string;
  readonly request: string;
  readonly duration_ms: number;
  /** How many refusals of callers without the token this record stands for; it is about the latest of them. */
  readonly count?: number;
  /** How many of these came while records could not be written. */
  readonly suppressed?: number;
};

/** What an exchange knows of itself before it has an answer. */
export type RecordStart = {
  readonly action: string;
  readonly sandbox: string | undefined;
  readonly client: string | undefined;
  readonly request: string;
  readonly startedMs: number;
};

export function toAdminRecord(start: RecordStart, response: AdminResponse, endedMs: number): AdminRecord {
  const sandbox = response.sandbox ?? start.sandbox;
  return {
    action: start.action,
    ...(sandbox === undefined ? {} : { sandbox }),
    status: response.status,
    outcome: outcomeOf(response.status),
    ...(response.reason === undefined ? {} : { reason: response.reason }),
    ...(response.revision === undefined ? {} : { revision: response.revision }),
    ...(start.client === undefined ? {} : { client: start.client }),
    request: start.request,
    duration_ms: Math.round((endedMs - start.startedMs) * 1000) / 1000,
  };
}

/** 408 and 499 are requests that never arrived whole, 500 is a fault of ours: none of them is a judgement. */
const FAILED: readonly number[] = [408, 499, 500];

function outcomeOf(status: number): AdminRecord['outcome'] {
  if (status < 400) return 'done';
  return FAILED.includes(status) ? 'failed' : 'refused';
}
