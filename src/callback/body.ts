// Reads a callback's response body, bounded before and after decoding.

const MAX_BYTES = 65_536;

type Decoder = (bytes: Uint8Array, bound: { maxOutputLength: number }) => Buffer;

/** One coding is accepted, although none is requested (RFC 9110 §8.4.1). "gzip, gzip" is none of these. */
function decoderOf(coding: string): Decoder | undefined {
  // Not imported: few responses are encoded, and the module would be a part of every start.
  const { brotliDecompressSync, gunzipSync, inflateSync } = process.getBuiltinModule('node:zlib');
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return gunzipSync;
    case 'deflate':
      return inflateSync;
    case 'br':
      return brotliDecompressSync;
    default:
      return undefined;
  }
}

/** The decoded bytes, at most 64 KiB, or the reason why not. Throws transport errors. */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string | readonly string[] | undefined,
): Promise<Buffer | string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BYTES) return `body over ${MAX_BYTES} bytes`;
    chunks.push(chunk);
  }
  return decode(Buffer.concat(chunks), String(contentEncoding ?? '').toLowerCase());
}

// Synchronous: input and output are bounded, and asynchronous zlib would occupy the threads that resolve names.
function decode(bytes: Buffer, coding: string): Buffer | string {
  if (coding === '' || coding === 'identity') return bytes;
  const decoder = decoderOf(coding);
  if (decoder === undefined) return 'unsupported content coding';
  try {
    return decoder(bytes, { maxOutputLength: MAX_BYTES });
  } catch {
    return `body is not valid in its content coding, or over ${MAX_BYTES} bytes when decoded`;
  }
}
