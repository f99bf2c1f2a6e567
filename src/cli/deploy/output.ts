// What the command prints: its progress on standard error, its result on standard output, as text or as JSON.
import { escapeControls } from '../issue-lines.ts';
import type { LogEntry } from './control-plane.ts';

export type Output = {
  progress(line: string): void;
  /** One document, or lines of text. */
  result(document: unknown, lines: readonly string[]): void;
};

export function createOutput(isJson: boolean): Output {
  return {
    progress: (line) => void process.stderr.write(`${line}\n`),
    result: (document, lines) =>
      void process.stdout.write(
        isJson ? `${JSON.stringify(document)}\n` : lines.map((line) => `${line}\n`).join(''),
      ),
  };
}

/** What a deployment prints reaches a terminal, which executes control characters. */
export function formatLogEntry({ timestamp, level, message }: LogEntry): string {
  const time = typeof timestamp === 'number' ? new Date(timestamp).toISOString() : timestamp;
  const parts = [time, level].filter((part) => part).map((part) => `[${part}] `);
  return escapeControls(`${parts.join('')}${message ?? ''}`);
}

/** Of a line of a terminal. */
const MAX_REASON = 100;

/** Of a reason, which may have lines of a log. */
export function firstLineOf(reason: string): string {
  const [first = ''] = reason.split('\n');
  return first.slice(0, MAX_REASON);
}

/** Columns as wide as their widest cell. */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const all = [head, ...rows].map((row) => row.map(escapeControls));
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
