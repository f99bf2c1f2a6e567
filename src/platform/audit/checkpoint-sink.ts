// The storage of checkpoints outside the database: a file to which lines are only appended, or objects in a bucket, none
// of which is ever overwritten.
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { codeOf } from '../store/database-error.ts';
import { openBucket } from '../store/files/object-store.ts';

export type CheckpointSink = {
  /** The lines are durable when it resolves. */
  append(lines: readonly string[]): Promise<void>;
  /** Every line that was ever appended, without its line break. */
  read(): AsyncIterable<string>;
};

/** `s3://bucket/prefix`, or the path of a file. */
export function openCheckpointSink(location: string): CheckpointSink {
  return location.startsWith('s3://') ? openBucketSink(location) : openFileSink(location);
}

/** Several processes may append to one file: each batch is a single write. */
function openFileSink(file: string): CheckpointSink {
  return {
    async append(lines) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await using handle = await open(file, 'a+', 0o600);
      // A batch that was cut off by a power failure must not corrupt the first line of this one.
      const start = (await endsLine(handle)) ? '' : '\n';
      await handle.appendFile(start + lines.join(''));
      await handle.sync();
      // Only then is the name of a new file durable too.
      await using directory = await open(dirname(file), 'r');
      await directory.sync();
    },
    async *read() {
      const input = createReadStream(file, 'utf8');
      try {
        for await (const line of createInterface({ input, crlfDelay: Infinity })) if (line !== '') yield line;
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error;
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

function openBucketSink(url: string): CheckpointSink {
  const bucket = openBucket(url);
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
