// Prevents core dumps: a core file holds every secret in memory. The size limit stops the kernel's own file; a dump that
// is piped to a crash handler ignores that limit, so the filter empties it as well. Linux only.
import { readFileSync, writeFileSync } from 'node:fs';

const FILTER = '/proc/self/coredump_filter';
const NOTHING = '0';
const LIMITS = '/proc/self/limits';

export type CoreDumps = {
  /** One for each measure that failed. */
  readonly warnings: readonly string[];
  /** A process that `start` starts gets the original filter: core dumps of other programs must not change. */
  whileAllowed<T>(start: () => T): T;
};

export function preventCoreDumps(): CoreDumps {
  if (process.platform !== 'linux') return { warnings: [], whileAllowed: (start) => start() };
  const given = filterOf();
  const warnings = [
    ...(given !== undefined && setFilter(NOTHING)
      ? []
      : [`${FILTER} cannot be set: a crash may write memory to a disk`]),
    ...(isLimitSet() ? [] : ['the limit of core dumps cannot be set to 0: start with `ulimit -c 0`']),
  ];
  return {
    warnings,
    whileAllowed(start) {
      if (given === undefined) return start();
      setFilter(given);
      try {
        return start();
      } finally {
        setFilter(NOTHING);
      }
    },
  };
}

/** Sets the soft limit only, which a command that `run` starts may raise again. */
function isLimitSet(): boolean {
  if (softLimit() === '0') return true;
  // PATH only: nothing else of our environment is needed.
  const env = { PATH: process.env['PATH'] };
  // Not imported: most supervisors set the limit, and the module would be a part of every start.
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  spawnSync('prlimit', [`--pid=${process.pid}`, '--core=0:'], { stdio: 'ignore', env });
  return softLimit() === '0';
}

function softLimit(): string | undefined {
  try {
    return /^Max core file size +(\S+)/m.exec(readFileSync(LIMITS, 'utf8'))?.[1];
  } catch {
    return undefined; // no /proc: an unreadable limit counts as not set
  }
}

function filterOf(): string | undefined {
  try {
    return `0x${readFileSync(FILTER, 'utf8').trim()}`;
  } catch {
    return undefined;
  }
}

function setFilter(filter: string): boolean {
  try {
    writeFileSync(FILTER, filter);
    return true;
  } catch {
    return false;
  }
}
