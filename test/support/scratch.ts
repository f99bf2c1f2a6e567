// A directory for the files of one test.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that is removed at the end of the test. */
export async function createScratch(): Promise<Scratch> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-test-'));
  return {
    path,
    async write(name, content) {
      const file = join(path, name);
      // Private, as the product requires for files with secrets.
      await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
      return file;
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

export type Scratch = AsyncDisposable & {
  readonly path: string;
  /** Writes text unchanged and anything else as JSON; returns the path of the file. */
  write(name: string, content: unknown): Promise<string>;
};
