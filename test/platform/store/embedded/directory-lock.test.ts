import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LOCK_FILE, lockDirectory } from '../../../../src/platform/store/embedded/directory-lock.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

let scratch: Scratch;
beforeEach(async () => {
  scratch = await createScratch();
});
afterEach(() => scratch[Symbol.asyncDispose]());

describe('the lock of a directory', () => {
  it('is exclusive until it is released, and the error names the process that holds it', async () => {
    const lock = await lockDirectory(scratch.path);
    await expect(lockDirectory(scratch.path)).rejects.toThrow(
      new RegExp(`^Process ${process.pid} uses the data directory .*DATABASE_URL`),
    );
    lock.release();
    (await lockDirectory(scratch.path)).release();
  });

  it('may be released twice', async () => {
    const lock = await lockDirectory(scratch.path);
    lock.release();
    expect(() => lock.release()).not.toThrow();
  });

  it('holds without the file that names the process', async () => {
    const lock = await lockDirectory(scratch.path);
    await rm(join(scratch.path, 'platform.pid'));
    await expect(lockDirectory(scratch.path)).rejects.toThrow(/^Another process uses/);
    lock.release();
  });

  it('is a file that only its owner can read', async () => {
    const lock = await lockDirectory(scratch.path);
    expect((await stat(join(scratch.path, LOCK_FILE))).mode & 0o777).toBe(0o600);
    lock.release();
  });
});
