// Finds the lines of text files below a folder that contain a literal text.
import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { RunMethod } from '../agent.ts';
import type { GrepMatch } from '../protocol/messages.ts';
import { findLines, type FoundLine } from './find-lines.ts';
import { GlobPattern } from './glob-pattern.ts';
import { LineSender } from './line-sender.ts';
import { walk } from './walk.ts';

export const grep: RunMethod<'grep'> = async (call, { path, pattern, glob, limit }) => {
  const root = resolve(path);
  const lines = new LineSender(call);
  const wanted = Buffer.from(pattern);
  let found = 0;
  for await (const file of files(root, glob, call.aborted)) {
    for await (const { line, text } of linesOf(file, wanted, call.aborted)) {
      if (found === limit) return { truncated: await lines.finish(true) };
      found += 1;
      await lines.send({ path: file, line, text } satisfies GrepMatch);
    }
  }
  return { truncated: await lines.finish(false) };
};

/** `glob` with a slash is for the path below the folder, without one for the name. */
async function* files(
  root: string,
  glob: string | null,
  aborted: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const stat = await lstat(root);
  const pattern = glob === null ? undefined : new GlobPattern(glob.includes('/') ? glob : `**/${glob}`);
  const start = pattern?.start() ?? new Set<number>();
  if (stat.isFile()) {
    if (pattern?.isMatch(pattern.next(start, basename(root))) ?? true) yield root;
    return;
  }
  const entries = walk(root, {
    aborted,
    state: start,
    enter: (name, above) => {
      const state = pattern?.next(above, name) ?? above;
      return pattern === undefined || state.size > 0 ? state : undefined;
    },
    leadsOn: (state) => pattern?.leadsOn(state) ?? true,
  });
  for await (const entry of entries)
    if (entry.isFile && (pattern?.isMatch(entry.state) ?? true)) yield entry.path;
}

async function* linesOf(
  path: string,
  wanted: Buffer,
  aborted: AbortSignal,
): AsyncGenerator<FoundLine, void, undefined> {
  // It may have become a link or a pipe since it was listed.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const file = await open(path, flags).catch(() => undefined);
  if (file === undefined) return;
  try {
    if ((await file.stat()).isFile()) yield* findLines(pieces(file, aborted), wanted);
  } finally {
    await file.close();
  }
}

const PIECE_BYTES = 64 * 1024;

async function* pieces(file: FileHandle, aborted: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
  for (;;) {
    if (aborted.aborted) return;
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    // What cannot be read to its end is as good as its beginning.
    const { bytesRead } = await file.read(piece, 0, PIECE_BYTES).catch(() => ({ bytesRead: 0 }));
    if (bytesRead === 0) return;
    yield piece.subarray(0, bytesRead);
  }
}
