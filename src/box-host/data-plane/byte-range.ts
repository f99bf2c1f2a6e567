// Range requests and their validators (RFC 9110 §13, §14) for one file. Pure.
import type { ByteRange } from '../../box-agent/protocol/messages.ts';

export type Validators = { readonly etag: string; readonly lastModified: string };
export type RangeDecision =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly range: ByteRange }
  | { readonly kind: 'unsatisfiable' };

/** Several ranges, and what is no range of bytes, may be ignored: the response is the whole file. */
export function decideRange(field: string | undefined, size: number): RangeDecision {
  const match = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(field ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (match === null || (first === '' && last === '')) return { kind: 'whole' };
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? { kind: 'unsatisfiable' } : part(size - length, size);
  }
  if (last !== '' && Number(last) < Number(first)) return { kind: 'whole' };
  if (Number(first) >= size) return { kind: 'unsatisfiable' };
  return part(Number(first), last === '' ? size : Math.min(Number(last) + 1, size));
}

function part(from: number, to: number): RangeDecision {
  return { kind: 'part', range: { offset: from, length: to - from } };
}

/** By weak comparison (§13.1.2). */
export function isUnmodified(ifNoneMatch: string | undefined, { etag }: Validators): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}

/** By strong comparison (§13.1.5): a weak tag never matches. */
export function allowsRange(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  return ifRange === undefined || ifRange.trim() === etag || ifRange.trim() === lastModified;
}
