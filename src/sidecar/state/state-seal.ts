// One sandbox's state as the bytes of its file: a header that says which format this is, then the sealed text. The seal
// names product, format, kind and sandbox, so a file copied to another name does not open.
import { type Sealer, sealOverheadBytes } from '../../base/seal.ts';

export const maxStateBytes: number = 64 * 1024 * 1024;

const MAGIC: Buffer = Buffer.from('sallyport state');
const FORMAT = 1;
const HEADER: Buffer = Buffer.from([...MAGIC, FORMAT]);

export const maxStateFileBytes: number = HEADER.length + sealOverheadBytes + maxStateBytes;

/** `fault` fits after the file's name. `isUnopened`: it may be whole, and the key the wrong one. */
export type OpenedState =
  | { readonly content: string }
  | { readonly error: string; readonly isUnopened: boolean };

export async function sealState(sealer: Sealer, id: string, content: string): Promise<Buffer> {
  const plain = Buffer.from(content);
  if (plain.length > maxStateBytes)
    throw new Error(`the state of ${id} has ${plain.length} bytes; at most ${maxStateBytes} are kept`);
  return Buffer.concat([HEADER, await sealer.seal(plain, associatedWith(id))]);
}

export async function openState(sealer: Sealer, id: string, bytes: Buffer): Promise<OpenedState> {
  const found = bytes.subarray(0, HEADER.length);
  if (found.length < HEADER.length && HEADER.indexOf(found) === 0) return invalid('is cut short');
  if (!found.subarray(0, MAGIC.length).equals(MAGIC)) return invalid('is not sealed state');
  if (found[MAGIC.length] !== FORMAT) return invalid('has the format of another version');
  const plain = await sealer.open(bytes.subarray(HEADER.length), associatedWith(id));
  if (plain === undefined) return { error: 'does not open', isUnopened: true };
  return { content: plain.toString() };
}

function associatedWith(id: string): string {
  return `sallyport/state/${FORMAT}/sandbox/${id}`;
}

function invalid(error: string): OpenedState {
  return { error, isUnopened: false };
}
