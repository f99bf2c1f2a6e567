// Whether other processes live in the box: while one does, the agent stays, because its end would be theirs.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `own` are process ids that do not count: the agent, and the one that started it. */
export function hasOtherProcesses(own: readonly number[], folder: string = '/proc'): boolean {
  return readdirSync(folder).some((name) => {
    if (!/^\d+$/.test(name) || own.includes(Number(name))) return false;
    return isAlive(join(folder, name, 'stat'));
  });
}

/** Not one that has ended and that nobody has waited for. */
function isAlive(file: string): boolean {
  let stat: string;
  try {
    stat = readFileSync(file, 'utf8');
  } catch {
    return false;
  }
  // The name of the program stands in parentheses and may contain some itself.
  return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
}
