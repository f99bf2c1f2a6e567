// The lines that an agent server prints, as lines of the log of its deployment: its own are JSON, and what else comes is text. Their content
// is that of a hostile program: it is shown, and nothing is decided by it. Pure.
import { isObject } from '../../../base/json/json-document.ts';

export type AgentLevel = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR' | 'CRITICAL';
export type AgentLine = { readonly level: AgentLevel; readonly message: string };

const LEVELS: ReadonlyMap<unknown, AgentLevel> = new Map<unknown, AgentLevel>([
  ['fatal', 'CRITICAL'],
  ['error', 'ERROR'],
  ['warn', 'WARNING'],
  ['info', 'INFO'],
  ['debug', 'DEBUG'],
  ['trace', 'DEBUG'],
]);

/** Known from the line itself. */
const OMITTED: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

export function parseAgentLine(stream: 'stdout' | 'stderr', line: string): AgentLine {
  const entry = line.startsWith('{') ? parseJson(line) : undefined;
  const found = LEVELS.get(entry?.['level']);
  if (entry === undefined || found === undefined)
    return { level: stream === 'stderr' ? 'ERROR' : 'INFO', message: line };
  const { msg } = entry;
  const fields = Object.entries(entry).filter(([name]) => !OMITTED.has(name));
  const text = fields.map(([name, value]) => `${name}=${formatValue(value)}`);
  const message = [...(typeof msg === 'string' ? [msg] : []), ...text].join(' ');
  return { level: found, message };
}

function parseJson(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function formatValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
