// Lists in pages: the query that every list of a kind shares. New lists are read by cursor; by offset only those whose public
// contract has it, because the database reads, and discards, everything before an offset.
import { z } from '../../base/schema.ts';

/** Items before a page by offset. A longer list is read with more precise filters. */
const MAX_OFFSET = 10_000;

/** `limit` is the size of a page when the request names none. */
export function createPageQuery(limit: number) {
  return z.strictObject({
    limit: z.int().min(1).max(100).default(limit),
    offset: z.int().min(0).max(MAX_OFFSET).default(0),
  });
}

export type Page = z.output<ReturnType<typeof createPageQuery>>;

/** Of a page by cursor (`platform/store/page-cursor`); at most `most` items. */
export function createCursorQuery(limit: number, most: number) {
  return z.strictObject({
    limit: z.int().min(1).max(most).default(limit),
    cursor: z.string().max(512).optional().describe('The cursor of the previous page'),
  });
}
