// Notices that files have changed, by looking at them: notifications of the system miss mounts and the targets of links. A change is
// reported once the files stay as they are from one look to the next, so that most writers have finished.
import { fingerprintOf } from './watched-files.ts';

/** Between two looks, so that changes are reported at most twice a second. */
const INTERVAL_MS = 500;
/** After so many looks files that keep changing are reported as they are. */
const MAX_UNSETTLED = 4;
/** A look takes at most this part of the time: a directory may have thousands of files. */
const LOOK_SHARE = 1 / 200;

export type Seen = {
  /** What the last report, or the start, was about. */
  readonly reported: string;
  /** What the last look found, where that was something else, and how many looks in a row did. */
  readonly changed?: { readonly to: string; readonly looks: number };
};

/** What follows from a look that found `now`; `isReport`: the change is to be reported. */
export function decideReport(
  { reported, changed }: Seen,
  now: string,
): { readonly seen: Seen; readonly isReport: boolean } {
  if (now === reported) return { seen: { reported }, isReport: false };
  const looks = (changed?.looks ?? 0) + 1;
  if (changed?.to === now || looks > MAX_UNSETTLED) return { seen: { reported: now }, isReport: true };
  return { seen: { reported, changed: { to: now, looks } }, isReport: false };
}

export type FileWatch = Disposable & {
  /** The files are about to be read for another reason: what they are now is not reported. */
  mark(): void;
  /** Calls `onChange` for each change since `createFileWatch`, one at a time. It must not reject. */
  start(onChange: () => Promise<void>): void;
};

/** Create it before the files are read for the first time. */
export function createFileWatch(paths: readonly string[]): FileWatch {
  let seen: Seen = { reported: fingerprintOf(paths) };
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  const look = async (onChange: () => Promise<void>): Promise<void> => {
    const startedMs = performance.now();
    const now = fingerprintOf(paths);
    const tookMs = performance.now() - startedMs;
    const decided = decideReport(seen, now);
    seen = decided.seen;
    if (decided.isReport) await onChange();
    if (isEnded) return;
    timer = setTimeout(look, Math.max(INTERVAL_MS, tookMs / LOOK_SHARE), onChange);
    timer.unref();
  };
  return {
    mark: () => void (seen = { reported: fingerprintOf(paths) }),
    start(onChange) {
      if (paths.length > 0) void look(onChange);
    },
    [Symbol.dispose]() {
      isEnded = true;
      clearTimeout(timer);
    },
  };
}
