// `sallyport --help`, `help COMMAND`, `COMMAND --help` and `--version`, and the error for a command that does not exist.
// Loads the declarations only: help needs no configuration and no program.
import { toLocKey } from '../../base/schema.ts';
import { agentServerCommand } from './agent-server-command.ts';
import type { CommandDeclaration } from './declaration.ts';
import { deployCommand } from './deploy-command.ts';
import { exportWorkerCommand } from './export-worker-command.ts';
import {
  caCommand,
  checkCommand,
  doctorCommand,
  explainCommand,
  statusCommand,
  tailCommand,
} from './inspection-commands.ts';
import { nearestOf } from './nearest.ts';
import { auditCommand, boxHostCommand, platformCommand } from './platform-commands.ts';
import { runnerCommand } from './runner-command.ts';
import {
  demoCommand,
  envCommand,
  proxyCommand,
  runCommandDeclaration,
  startCommand,
} from './sidecar-commands.ts';
import { formatOverview, formatUsage } from './usage.ts';
import { readVersion } from './version.ts';

/** Every command that people start, in the order of the overview. */
export const allCommands: readonly CommandDeclaration[] = [
  proxyCommand,
  runCommandDeclaration,
  envCommand,
  checkCommand,
  explainCommand,
  doctorCommand,
  statusCommand,
  tailCommand,
  caCommand,
  startCommand,
  demoCommand,
  platformCommand,
  auditCommand,
  runnerCommand,
  exportWorkerCommand,
  agentServerCommand,
  deployCommand,
];

/** Exit code 0 for what was asked for; 2 for no command, or one that does not exist. */
export async function run(name: string, args: readonly string[]): Promise<number> {
  if (name === '--version' || name === '-V' || name === 'version') {
    process.stdout.write(`sallyport ${await readVersion()} (Node ${process.versions.node})\n`);
    return 0;
  }
  const isHelp = ['--help', '-h', 'help'].includes(name);
  const subject = isHelp ? args.find((arg) => !arg.startsWith('-')) : name;
  if (subject === undefined || subject === '') return showOverview(isHelp);
  const command = [...allCommands, boxHostCommand].find((one) => one.name === subject);
  if (command !== undefined) {
    process.stdout.write(formatUsage(command));
    return 0;
  }
  if (subject.startsWith('-')) {
    process.stderr.write(`sallyport: unknown option ${toLocKey(subject)}: begin with a command\n\n`);
    return showOverview(false);
  }
  const near = nearestOf(
    subject,
    allCommands.map((one) => one.name),
  );
  const advice = near === undefined ? '' : `: did you mean ${near}?`;
  process.stderr.write(`sallyport: unknown command '${toLocKey(subject)}'${advice}\n\n`);
  return showOverview(false);
}

function showOverview(isAskedFor: boolean): number {
  (isAskedFor ? process.stdout : process.stderr).write(formatOverview(allCommands));
  return isAskedFor ? 0 : 2;
}
