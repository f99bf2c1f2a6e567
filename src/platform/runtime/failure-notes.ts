// Lines in the log about what is tried again and again: one when it begins to fail, one when it fails otherwise, one when it works
// again. A database that is away for a night is not a million lines.
import { describeBug, type Log } from '../../base/log.ts';

export type FailureNotes = {
  /** `what` is the message. With a box, each box is noted by itself. */
  failed(what: string, error: unknown, box?: string): void;
  succeeded(what: string, box?: string): void;
};

export function createFailureNotes(log: Pick<Log, 'warn' | 'info'>): FailureNotes {
  const failing = new Map<string, { readonly kind: string; readonly sinceMs: number }>();
  return {
    failed(what, error, box) {
      const key = keyOf(what, box);
      const before = failing.get(key);
      const kind = kindOf(error);
      if (before?.kind === kind) return;
      failing.set(key, { kind, sinceMs: before?.sinceMs ?? performance.now() });
      log.warn({ ...describeBug(error), ...(box === undefined ? {} : { box }) }, what);
    },
    succeeded(what, box) {
      const key = keyOf(what, box);
      const before = failing.get(key);
      if (before === undefined) return;
      failing.delete(key);
      const seconds = Math.round((performance.now() - before.sinceMs) / 1000);
      log.info({ seconds, ...(box === undefined ? {} : { box }) }, `${what}, which is over`);
    },
  };
}

function keyOf(what: string, box = ''): string {
  return `${box} ${what}`;
}

/** Not the message: it may name another connection or box each time. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { kind, code } = error as { readonly kind?: unknown; readonly code?: unknown };
  return [error.name, kind, code].filter((part) => typeof part === 'string').join(' ');
}
