// The processes of this machine, as the kernel lists them to everybody: parents, sessions, users and memory. A program cannot hide here,
// unlike in /proc/PID/environ or /proc/PID/ns, which it can close to others.
import { readdirSync, readFileSync } from 'node:fs';

export type ProcessEntry = {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** When it was started, in ticks since the machine was: with its id, the process and no later one. */
  readonly startedTicks: number;
};

export type ProcessTable = ReadonlyMap<number, ProcessEntry>;

export function readProcessTable(): ProcessTable {
  const entries = readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : [],
  );
  return new Map(entries.map((entry) => [entry.pid, entry]));
}

/** Undefined: it has ended. */
export function readProcess(pid: number): ProcessEntry | undefined {
  return parseStat(readOwnFile(pid, 'stat'));
}

/** `PID (NAME) STATE PARENT GROUP SESSION …`. A program chooses its name, which may contain parentheses. */
export function parseStat(text: string): ProcessEntry | undefined {
  const nameEnd = text.lastIndexOf(')');
  const fields = text.slice(nameEnd + 2).split(' ');
  const [state = '', parent = '', , session = ''] = fields;
  if (nameEnd === -1 || state === '' || state === 'Z' || state === 'X') return undefined;
  return {
    pid: Number.parseInt(text, 10),
    parent: Number(parent),
    session: Number(session),
    startedTicks: Number(fields[19]),
  };
}

/** The process, its descendants, and what is in the session that it leads: what was orphaned has another parent by then. */
export function findTree(table: ProcessTable, root: number): readonly number[] {
  const children = Map.groupBy(table.values(), ({ parent }) => parent);
  const found = new Set<number>(table.has(root) ? [root] : []);
  for (const { pid, session } of table.values()) if (session === root) found.add(pid);
  // A set is walked to what is added meanwhile.
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child.pid);
  return [...found];
}

/** Bytes that nobody else pays for: programs and libraries in files are shared. 0 for one that has ended. */
export function privateBytes(pid: number): number {
  return parsePrivateBytes(readOwnFile(pid, 'status'));
}

export function parsePrivateBytes(status: string): number {
  const kibibytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
  return 1024 * (kibibytes('RssAnon') + kibibytes('RssShmem') + kibibytes('VmSwap'));
}

/** The processes of these users, by any of their user ids. */
export function processesOf(
  users: ReadonlySet<number>,
  table: ProcessTable = readProcessTable(),
): readonly number[] {
  return [...table.keys()].filter((pid) => {
    const [, ids = ''] = /^Uid:\s+(.*)$/m.exec(readOwnFile(pid, 'status')) ?? [];
    return ids.split(/\s+/).some((id) => id !== '' && users.has(Number(id)));
  });
}

function readOwnFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
