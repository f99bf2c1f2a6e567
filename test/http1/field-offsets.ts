// Everything that a reader of a parsed head can see of its field lines.
import type { Fields } from '../../src/http1/fields.ts';

/** Of each line: the id of its name, and where name, value and line begin and end. */
export function fieldOffsets(fields: Fields): readonly (readonly number[])[] {
  return Array.from({ length: fields.count }, (_, i) => [
    fields.id(i),
    fields.nameStart(i),
    fields.nameEnd(i),
    fields.valueStart(i),
    fields.valueEnd(i),
    fields.lineEnd(i),
  ]);
}
