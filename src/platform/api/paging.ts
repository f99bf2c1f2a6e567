// Lists by offset: the query of a page, which every list without a cursor shares.
import { z } from '../../base/schema.ts';

/** `limit` is the size of a page when the request names none. */
export function createPageQuery(limit: number) {
  return z.strictObject({
    limit: z.int().min(1).max(100).default(limit),
    offset: z.int().min(0).max(1_000_000_000).default(0),
  });
}

export type Page = z.output<ReturnType<typeof createPageQuery>>;
