// Text to zstd frames, by few compressors that stay. One for each text would be many: each takes half a mebibyte in the memory of the
// thread that it first ran in, and with its output it waits for a collection of the whole heap (Node holds it by a weak reference).
import { constants, createZstdCompress, type ZstdCompress } from 'node:zlib';

/** Of the text of a frame: it takes less than a millisecond. Smaller frames would have less to find repetitions in. */
export const FRAME_BYTES = 128 * 1024;
const WINDOW_LOG = 17;
/** As many as can run while this process does something else. */
const COMPRESSORS = 2;

const OPTIONS = {
  // A frame is one piece, or two where it does not fit into the rest of a chunk.
  chunkSize: 2 * FRAME_BYTES,
  // More than a frame: a stream whose output is not read goes no further.
  readableHighWaterMark: 4 * FRAME_BYTES,
  params: {
    [constants.ZSTD_c_compressionLevel]: 3,
    [constants.ZSTD_c_windowLog]: WINDOW_LOG,
  },
};

const idle: ZstdCompress[] = [];
const waiting: ((compressor: ZstdCompress) => void)[] = [];
let made = 0;

/**
 * One frame with all of the text, which must stay as it is until then. Its pieces are parts of larger buffers: who holds them for long
 * copies them.
 */
export async function compressFrame(text: Uint8Array): Promise<readonly Buffer[]> {
  const compressor = await take();
  try {
    return await compress(compressor, text);
  } finally {
    give(compressor);
  }
}

function take(): ZstdCompress | Promise<ZstdCompress> {
  const found = idle.pop();
  if (found !== undefined) return found;
  if (made < COMPRESSORS) return make();
  return new Promise((resolve) => void waiting.push(resolve));
}

function make(): ZstdCompress {
  made += 1;
  const compressor = createZstdCompress(OPTIONS);
  // Who waits for a frame gets it.
  compressor.on('error', () => undefined);
  return compressor;
}

function give(compressor: ZstdCompress): void {
  if (compressor.destroyed) made -= 1;
  const next = waiting.shift();
  if (next !== undefined) next(compressor.destroyed ? make() : compressor);
  else if (!compressor.destroyed) idle.push(compressor);
}

function compress(compressor: ZstdCompress, text: Uint8Array): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error | null | undefined): void => {
      if (error) reject(error);
    };
    compressor.write(text, fail);
    // The types know no error here.
    compressor.flush(constants.ZSTD_e_end, (error?: Error | null) => {
      fail(error);
      if (error) return;
      const pieces: Buffer[] = [];
      for (let piece: Buffer | null; (piece = compressor.read() as Buffer | null) !== null; )
        pieces.push(piece);
      resolve(pieces);
    });
  });
}
