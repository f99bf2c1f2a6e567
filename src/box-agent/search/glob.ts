// Finds the files and folders whose path below a folder matches a pattern.
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RunMethod } from '../agent.ts';
import type { GlobMatch } from '../protocol/messages.ts';
import { GlobPattern } from './glob-pattern.ts';
import { LineSender } from './line-sender.ts';
import { statFolder, walk } from './walk.ts';

export const glob: RunMethod<'glob'> = async (call, { path, pattern, limit }) => {
  const folder = resolve(path);
  await statFolder(folder);
  const compiled = new GlobPattern(pattern);
  const lines = new LineSender(call);
  let found = 0;
  const entries = walk(folder, {
    aborted: call.aborted,
    state: compiled.start(),
    enter: (name, above) => {
      const state = compiled.next(above, name);
      return state.size > 0 ? state : undefined;
    },
    leadsOn: (state) => compiled.leadsOn(state),
  });
  for await (const entry of entries) {
    if (!compiled.isMatch(entry.state)) continue;
    const stat = await lstat(entry.path).catch(() => undefined);
    if (stat === undefined) continue;
    if (found === limit) return { truncated: await lines.finish(true) };
    found += 1;
    await lines.send({
      path: entry.path,
      isDirectory: entry.isDirectory,
      size: entry.isDirectory ? 0 : stat.size,
      mtimeMs: stat.mtimeMs,
    } satisfies GlobMatch);
  }
  return { truncated: await lines.finish(false) };
};
