// Where checkpoints are kept: outside the database, in a file to which lines are only added, or as objects in a bucket,
// none of which is ever written twice. It must not know what a line says.
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { openBucket } from '../store/object-store.ts';

export type CheckpointSink = {
  /** The lines are durable when it resolves. */
  append(lines: readonly string[]): Promise<void>;
  /** Every line that was ever added, without its end. */
  read(): AsyncIterable<string>;
};

/** `s3://bucket/prefix`, or the path of a file. */
export function openCheckpointSink(place: string): CheckpointSink {
  return place.startsWith('s3://') ? openBucketSink(place) : openFileSink(place);
}

/** Several processes may add to one file: each batch is one write at its end. */
function openFileSink(file: string): CheckpointSink {
  return {
    async append(lines) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const handle = await open(file, 'a+', 0o600);
      try {
        // A batch that was cut off by a power failure must not spoil the first line of this one.
        const start = (await endsLine(handle)) ? '' : '\n';
        await handle.appendFile(start + lines.join(''));
        await handle.sync();
      } finally {
        await handle.close();
      }
      await syncDirectory(dirname(file));
    },
    async *read() {
      const input = createReadStream(file, 'utf8');
      try {
        for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line !== '') yield line;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    },
  };
}

async function endsLine(handle: Awaited<ReturnType<typeof open>>): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return true;
  const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: size - 1 });
  return buffer[0] === 0x0a;
}

/** The file's own name is durable only then. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function openBucketSink(place: string): CheckpointSink {
  const bucket = openBucket(place);
  return {
    async append(lines) {
      const name = `${new Date().toISOString()}-${randomUUID()}.jsonl`;
      await bucket.create(name, lines.join(''));
    },
    async *read() {
      for await (const name of bucket.list())
        for (const line of (await bucket.read(name)).split('\n')) if (line !== '') yield line;
    },
  };
}
