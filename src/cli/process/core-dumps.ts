// No picture of this process's memory on a disk: a core holds every secret that it has in use. The size limit stops the
// kernel's own file; what is piped to a crash handler ignores that limit, so the filter empties it as well. Linux only.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const FILTER = '/proc/self/coredump_filter';
const NOTHING = '0';
const LIMITS = '/proc/self/limits';

export type CoreDumps = {
  /** One sentence for each thing that could not be done. */
  readonly warnings: readonly string[];
  /** What `start` starts has the filter that this process was given: another program's core is its own affair. */
  whileAllowed<T>(start: () => T): T;
};

export function preventCoreDumps(): CoreDumps {
  if (process.platform !== 'linux') return { warnings: [], whileAllowed: (start) => start() };
  const given = filterOf();
  const warnings = [
    ...(given !== undefined && setFilter(NOTHING)
      ? []
      : [`${FILTER} cannot be set: a crash may write memory`]),
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

/** The soft limit only, which a command that we run may raise again. */
function isLimitSet(): boolean {
  if (softLimit() === '0') return true;
  // It is told where programs are, and nothing else that stands in our environment.
  const env = { PATH: process.env['PATH'] };
  spawnSync('prlimit', [`--pid=${process.pid}`, '--core=0:'], { stdio: 'ignore', env });
  return softLimit() === '0';
}

function softLimit(): string | undefined {
  try {
    return /^Max core file size +(\S+)/m.exec(readFileSync(LIMITS, 'utf8'))?.[1];
  } catch {
    return undefined; // no /proc: a limit that cannot be read counts as one that is not set
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
