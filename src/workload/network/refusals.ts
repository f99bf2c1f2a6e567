// What a sidecar refused a workload, read from its records. Pure.
import { isObject } from '../../base/json/json-document.ts';
import type { WorkloadRefusal } from '../workload.ts';

const OUTCOMES: readonly unknown[] = ['refused', 'failed'];

/** `text`: a record of an exchange. Undefined: nothing was refused, or the text is no record. */
export function parseRefusal(text: string): WorkloadRefusal | undefined {
  const record = parseRecord(text);
  if (record === undefined || !OUTCOMES.includes(record['outcome'])) return undefined;
  const { reason, status } = record;
  if (typeof reason !== 'string') return undefined;
  const textOf = (name: string): string | undefined => {
    const value = record[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    reason,
    authority: textOf('authority'),
    method: textOf('method'),
    cause: textOf('cause'),
    status: typeof status === 'number' ? status : undefined,
  };
}

function parseRecord(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
