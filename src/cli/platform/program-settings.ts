// The settings of a program that runs beside a platform: those that the platform hands to it, or those of the config file and the variables
// of the platform, and the options of its own command line.
import type { Issue } from '../../base/schema.ts';
import { parsePlatformConfig, type PlatformConfig } from '../../platform/config.ts';
import { claimSecrets, exposedVariables, handOverSecretVariables } from '../../sidecar/secret-environment.ts';
import { type CommandDeclaration, parseCommandLine } from '../command/declaration.ts';
import { readDocument } from '../document.ts';
import { formatIssues } from '../issue-lines.ts';
import { preventCoreDumps } from '../process/core-dumps.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';
import { misspeltVariables } from './misspelt-variables.ts';
import { PARENT_INPUT_VARIABLE, type ParentLink, readParentInput } from './parent-input.ts';

export type ProgramSettings = {
  readonly config: PlatformConfig;
  /** Undefined: an operator has started it. */
  readonly parent: ParentLink | undefined;
  readonly warnings: readonly string[];
};

type Variables = Readonly<Record<string, string | undefined>>;
/** What is wrong beyond what one setting says. */
type FindIssues = (config: PlatformConfig, variables: Variables) => Promise<readonly Issue[]>;

const noIssues: FindIssues = async () => [];

/**
 * Called first: a process that was started with secrets in its environment is replaced. Undefined: something is invalid, and every issue was
 * written to standard error.
 */
export async function readProgramSettings(
  command: CommandDeclaration,
  args: readonly string[],
  findIssues = noIssues,
): Promise<ProgramSettings | undefined> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: secrets that are not claimed stay behind in a file.
  const { operators } = claimSecrets(process.env);
  const given = parseOptions(command, args);
  const descriptor = process.env[PARENT_INPUT_VARIABLE];
  const parent = descriptor === undefined ? undefined : await readParentInput(Number(descriptor));
  const document = parent?.input.document ?? (given.file === undefined ? {} : await readDocument(given.file));
  // Of package managers, or of destinations that use the credentials of this installation.
  Object.assign(process.env, parent?.input.environment);
  const variables = { ...process.env, ...operators, ...parent?.input.variables, ...given.variables };
  const parsed = parsePlatformConfig(document, variables);
  const issues = parsed.ok ? await findIssues(parsed.value, variables) : parsed.issues;
  if (parsed.ok && issues.length === 0) {
    const warnings = [...preventCoreDumps().warnings, ...misspeltVariables()];
    return { config: parsed.value, parent, warnings };
  }
  process.stderr.write(formatIssues(given.file ?? 'sallyport', issues));
  return undefined;
}

export type GivenOptions = {
  readonly file: string | undefined;
  /** The options, as the variables that they stand for. */
  readonly variables: Readonly<Record<string, string>>;
};

/** Throws an InputError. */
export function parseOptions(command: CommandDeclaration, args: readonly string[]): GivenOptions {
  const values: Readonly<Record<string, unknown>> = parseCommandLine(command, args).values;
  const variables = Object.entries(command.options).flatMap(([option, { variable }]) => {
    const value = values[option];
    return variable === undefined || value === undefined ? [] : [[variable, String(value)] as const];
  });
  const file = values['config'];
  return {
    file: typeof file === 'string' ? file : undefined,
    variables: Object.fromEntries(variables),
  };
}
