// The content of a request body without its coding (RFC 9110 §8.4), decoded as it is consumed. A few bytes can decode to
// gigabytes, so that what was decoded is limited by itself and in proportion to what was sent.
import { Readable, pipeline } from 'node:stream';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { BodyError } from './body-error.ts';
import type { RequestHead } from './request-head.ts';

export type ContentCoding = 'gzip' | 'zstd';

export type DecodedLimits = {
  /** Of the content, without its coding. */
  readonly maxBytes: number;
  /** How many bytes of content one sent byte may stand for. It applies from a mebibyte on: short texts repeat themselves. */
  readonly maxRatio: number;
};

/** Undefined for a body without coding. Throws a BodyError for a coding that is not in `accepted`. */
export function readContentCoding(
  head: Pick<RequestHead, 'field'>,
  accepted: readonly ContentCoding[],
): ContentCoding | undefined {
  const written = head.field('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (written === 'identity') return undefined;
  // RFC 9110 §8.4.1.3: x-gzip is the same.
  const coding = accepted.find((one) => one === written || (one === 'gzip' && written === 'x-gzip'));
  if (coding !== undefined) return coding;
  const known = accepted.length === 0 ? 'identity' : accepted.join(', ');
  throw new BodyError('content_coding', `Content-Encoding must be one of: ${known}`, {
    'Accept-Encoding': known,
  });
}

/**
 * The content of one or several gzip members or zstd frames. Throws a BodyError for what is no such thing, is cut off or has
 * bytes behind it, and what `sent` throws.
 */
export async function* decodeContent(
  sent: AsyncIterable<Uint8Array>,
  coding: ContentCoding,
  { maxBytes, maxRatio }: DecodedLimits,
): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = DECODERS[coding]();
  const taken = { bytes: 0, isAll: false };
  // Each end of the pipeline destroys the other; the decoder throws what `sent` threw.
  pipeline(Readable.from(counted(sent, taken)), decoder, () => undefined);
  let bytes = 0;
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new BodyError('too_large', `The body is larger than ${maxBytes} bytes`);
      if (bytes > RATIO_FROM && bytes > maxRatio * taken.bytes)
        throw new BodyError('too_large', `The body decodes to more than ${maxRatio} times its size`);
      yield piece;
    }
  } catch (error) {
    throw isDecodingError(error) ? notDecodable(coding) : error;
  }
  // gunzip ends where the last member ends, and may ignore what follows.
  if (!taken.isAll || decoder.bytesWritten !== taken.bytes) throw notDecodable(coding);
}

const RATIO_FROM = 1024 * 1024;

// RFC 9659: a zstd window of more than 8 MiB need not be supported; the decoder would allocate what the frame asks for.
const ZSTD_WINDOW_LOG = 23;
const PIECE_BYTES = 64 * 1024;

const DECODERS = {
  gzip: () => createGunzip({ chunkSize: PIECE_BYTES }),
  zstd: () =>
    createZstdDecompress({
      chunkSize: PIECE_BYTES,
      // Without it the first bytes of a frame that is cut off are ignored. It allows further frames, not so with gunzip.
      rejectGarbageAfterEnd: true,
      params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
    }),
} as const satisfies Readonly<Record<ContentCoding, unknown>>;

async function* counted(
  sent: AsyncIterable<Uint8Array>,
  taken: { bytes: number; isAll: boolean },
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of sent) {
    taken.bytes += piece.length;
    yield piece;
  }
  taken.isAll = true;
}

function isDecodingError(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' && /^(?:Z_|ZSTD_|ERR_TRAILING_JUNK)/.test(code);
}

function notDecodable(coding: ContentCoding): BodyError {
  return new BodyError(
    'not_decodable',
    `The body is not ${coding}, as Content-Encoding announces, or is cut off`,
  );
}
