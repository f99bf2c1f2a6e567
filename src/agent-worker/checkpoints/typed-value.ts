// Values of checkpoints on their way to the server, which stores them as they are: what the serializer of the deployment wrote,
// with the name that it gave the format.
import type { Serializer } from '../graphs/library.ts';
import type { Typed } from '../protocol/messages.ts';

export async function writeTyped(serde: Serializer, value: unknown): Promise<Typed> {
  const [type, data] = await serde.dumpsTyped(value);
  if (typeof data === 'string') return { type, text: data };
  if (type !== 'json') return { type, base64: Buffer.from(data).toString('base64') };
  return { type, text: Buffer.from(data).toString('utf8') };
}

export function readTyped(serde: Serializer, { type, text, base64 }: Typed): Promise<unknown> {
  return serde.loadsTyped(type, text ?? new Uint8Array(Buffer.from(base64 ?? '', 'base64')));
}
