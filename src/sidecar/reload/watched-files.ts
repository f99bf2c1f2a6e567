// What shows that files have changed, by their attributes alone: names that lead elsewhere (Kubernetes swaps a link for each update of a
// mount), files that an editor puts in the place of others, and mounts that are away for a while.
import { type BigIntStats, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../tls/pem-files.ts';

/** Equal for equal files, whatever is read of them. Of a directory it tells its files; dot entries are none of them. */
export function fingerprintOf(paths: readonly string[]): string {
  return paths.flatMap((path) => marksOf(path)).join('\n');
}

function marksOf(path: string): readonly string[] {
  try {
    const stats = statSync(path, { bigint: true });
    if (!stats.isDirectory()) return [markOf(path, stats)];
    const names = readdirSync(path).filter((name) => !name.startsWith('.'));
    return [`${path}/`, ...names.toSorted().map((name) => entryMark(join(path, name)))];
  } catch (error) {
    return [`${path} ${codeOf(error) ?? 'unreadable'}`];
  }
}

function entryMark(path: string): string {
  try {
    return markOf(path, statSync(path, { bigint: true }));
  } catch (error) {
    return `${path} ${codeOf(error) ?? 'unreadable'}`;
  }
}

/** Of pipes and devices nothing: they are read once. */
function markOf(path: string, stats: BigIntStats): string {
  if (!stats.isFile()) return `${path} ${stats.isDirectory() ? 'directory' : 'special'}`;
  const { dev, ino, size, mtimeNs, ctimeNs, mode } = stats;
  return [path, dev, ino, size, mtimeNs, ctimeNs, mode].join(' ');
}
