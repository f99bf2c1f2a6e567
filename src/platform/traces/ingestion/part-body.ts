// The body of one part: it has the length that the part announces, if it does, and no coding of its own.
import type { Part } from '../../api/body/upload.ts';
import type { BodyTurn } from './turns/body-turn.ts';

/** What is wrong with a part; the request is refused with it. */
export class InvalidPart extends Error {
  override readonly name: string = 'InvalidPart';
}

/** Throws InvalidPart, and what the body of the request throws. */
export async function* readPartBody(
  { fields, body }: Part,
  turn: BodyTurn,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (fields.has('content-encoding'))
    throw new InvalidPart('A part must have no Content-Encoding: compress the whole body');
  const announced = announcedLength(fields);
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    await turn.take(piece.length);
    yield piece;
  }
  if (announced !== undefined && announced !== length)
    throw new InvalidPart(`The part has ${length} bytes, and announces ${announced}`);
}

/** Some clients send it as a header of the part, others as a parameter of its type. */
function announcedLength(fields: Part['fields']): number | undefined {
  const parameter = /;[ \t]*length="?(\d{1,15})"?[ \t]*(?:;|$)/i.exec(fields.get('content-type') ?? '');
  const text = fields.get('content-length') ?? parameter?.[1];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
