// A time as clients write it and as the database can keep it: not before 1970, since PostgreSQL knows no year 0.
import { z } from '../../base/schema.ts';

export const pointInTime: z.ZodType<string> = z.iso
  .datetime({ offset: true, error: 'Input should be a time as in RFC 3339' })
  .refine((text) => Date.parse(text) >= 0, 'Input should be a time from 1970 on');
