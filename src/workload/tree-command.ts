// Programs of the machine that change directory trees, some of them for minutes. They end with this process, also when it is killed: the
// process that follows would remove a directory into which they still write.
import { type CommandResult, requireCommand, runCommand } from '../box-host/command.ts';

export type TreeCommandOptions = {
  readonly timeoutMs: number;
};

export function runTreeCommand(
  command: readonly string[],
  { timeoutMs }: TreeCommandOptions,
): Promise<CommandResult> {
  return runCommand(endingWithParent(command), [], timeoutMs);
}

/** Rejects with an Error that says what failed and why. */
export function requireTreeCommand(
  what: string,
  command: readonly string[],
  { timeoutMs }: TreeCommandOptions,
): Promise<string> {
  return requireCommand(what, endingWithParent(command), [], timeoutMs);
}

/** The kernel keeps the signal when the program is executed, and drops it for what that starts: it must replace itself. */
function endingWithParent(command: readonly string[]): readonly string[] {
  return ['setpriv', '--pdeathsig', 'KILL', '--', ...command];
}
