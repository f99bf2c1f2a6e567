// The header blocks of a client that sends several heads in turn: fields that all heads have in common are in the table of
// the connection after the first request, the others stay literal.
import { type Field, encodeWithTable } from './hpack.ts';

export type Rotation = { readonly first: Buffer; readonly blocks: readonly Buffer[] };

/** `first` is the first block of a connection, for the first head; `blocks` are those of all later requests. */
export function encodeRotation(heads: readonly (readonly Field[])[], hasTable: boolean): Rotation {
  const [example = []] = heads;
  const isShared = (field: Field): boolean =>
    field[0] !== ':path' &&
    heads.every((head) => head.some(([name, value]) => name === field[0] && value === field[1]));
  const shared = hasTable ? example.filter(isShared) : [];
  return {
    first: encodeWithTable(example, shared, 'insert', hasTable),
    blocks: heads.map((head) => encodeWithTable(head, shared, 'use', hasTable)),
  };
}
