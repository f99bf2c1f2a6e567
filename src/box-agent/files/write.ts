// Writes one file as a whole: into a temporary file beside it, which then takes its place. A reader sees the old content or the
// new one, and an upload that is cut off leaves nothing. A link in the place of the file is replaced, not followed.
import { randomBytes } from 'node:crypto';
import { chmod, type FileHandle, lstat, mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { RunMethod } from '../agent.ts';
import type { AgentCall } from '../agent-call.ts';
import { CallError, codeOf } from '../call-error.ts';

export const write: RunMethod<'write'> = async (call, { path }) => {
  const target = resolve(path);
  const folder = dirname(target);
  const mode = await modeOf(target);
  await makeFolder(folder);
  const temporary = join(folder, `.upload-${randomBytes(8).toString('hex')}`);
  const file = await open(temporary, 'wx');
  try {
    await writeInput(call, file);
    if (mode !== undefined) await chmod(temporary, mode);
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  return {};
};

/** Not the recursive mkdir of Node, which never ends below /proc: a folder is missing there after its parent was found. */
async function makeFolder(folder: string): Promise<void> {
  const code = await makeOne(folder);
  if (code !== 'ENOENT' || dirname(folder) === folder) return;
  await makeFolder(dirname(folder));
  await makeOne(folder);
}

/** What is wrong with a folder shows when the file is opened in it. */
async function makeOne(folder: string): Promise<string | undefined> {
  return mkdir(folder).then(() => undefined, codeOf);
}

/** Of the file that is replaced: a script stays executable. */
async function modeOf(target: string): Promise<number | undefined> {
  const stat = await lstat(target).catch(() => undefined);
  if (stat?.isDirectory() === true) throw new CallError('NOT_A_FILE');
  return stat?.isFile() === true ? stat.mode & 0o777 : undefined;
}

async function writeInput(call: AgentCall, file: FileHandle): Promise<void> {
  try {
    for await (const piece of call.input())
      for (let at = 0; at < piece.length; ) at += (await file.write(piece, at)).bytesWritten;
  } finally {
    await file.close();
  }
}
