// A time as clients write it and as the database can keep it and we can write it again: PostgreSQL knows no year 0, and
// RFC 3339 none of five digits.
import { z } from '../../base/schema.ts';

const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

export const pointInTime: z.ZodType<string> = z.iso
  .datetime({ offset: true, error: 'Input should be a time as in RFC 3339' })
  .refine((text) => isKept(Date.parse(text)), 'Input should be a time from 1970 to 9999');

function isKept(ms: number): boolean {
  return ms >= 0 && ms <= LAST_MS;
}
