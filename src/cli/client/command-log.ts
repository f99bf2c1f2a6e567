// The log of `run`. The terminal belongs to the command: it gets warnings and errors only, as one line of text each, and
// everything else goes to the file of --log.
import { type LogSink, createFdSink } from '../../base/log.ts';
import { escapeControls } from '../issue-lines.ts';

// A client that repeats a mistake repeats its warning.
const MAX_SHOWN = 100;
// A log line begins with its level; records and lines of other levels are not parsed.
const LOUD = /^\{"level":"(?:warn|error)",/;

/** `fd`: of --log; undefined: there is none. `terminal`: undefined if the log goes there itself. */
export function createCommandLog(
  fd: number | undefined,
  terminal: LogSink | undefined = fd === 2 ? undefined : createFdSink(2),
): LogSink {
  const log = fd === undefined ? undefined : createFdSink(fd);
  const sinks = [log, terminal].filter((sink) => sink !== undefined);
  const shown = new Set<string>();
  return {
    write(line) {
      log?.write(line);
      const text = terminal && terminalLine(line);
      if (text === undefined || shown.has(text) || shown.size === MAX_SHOWN) return;
      shown.add(text);
      terminal?.write(text);
    },
    get isBlocked() {
      return sinks.some((sink) => sink.isBlocked);
    },
    get dropped() {
      return sinks.reduce((sum, sink) => sum + sink.dropped, 0);
    },
    async close(timeoutMs) {
      await Promise.all(sinks.map((sink) => sink.close(timeoutMs)));
    },
  };
}

/** A warning as text; an error whole, because it reports a bug. */
function terminalLine(line: string): string | undefined {
  if (!LOUD.test(line)) return undefined;
  const { level, msg, file, at, authority } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  if (level === 'error') return line;
  const place = [file, at, authority].filter((part) => typeof part === 'string' && part !== '');
  return `sallyport: ${escapeControls([...place, msg].join(': '))}\n`;
}
