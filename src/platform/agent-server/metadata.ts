// How large metadata may be: it is searched, shown in every list, and part of every checkpoint of a run.
import { InvalidInput } from '../../base/domain-error.ts';

/** As JSON. */
export const MAX_METADATA_BYTES: number = 256 * 1024;

/** Of what is to be stored: as it was sent, with what a handler has added, merged with what was there. JSON. Throws InvalidInput. */
export function requireSmallMetadata(metadata: string): void {
  if (Buffer.byteLength(metadata) <= MAX_METADATA_BYTES) return;
  // The database writes spaces between members, which nobody has sent.
  if (Buffer.byteLength(JSON.stringify(JSON.parse(metadata))) <= MAX_METADATA_BYTES) return;
  throw new InvalidInput([
    {
      loc: ['body', 'metadata'],
      msg: `Metadata must have at most ${MAX_METADATA_BYTES} bytes as JSON, with what is merged into it: store larger values in the state`,
      type: 'too_long',
    },
  ]);
}
