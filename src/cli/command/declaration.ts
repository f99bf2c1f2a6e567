// How a command is called: one declaration for each command, from which its usage, its options and its exit codes come.
// Parses arguments by a declaration; an error says what is wrong, and which option was probably meant.
import { parseArgs } from 'node:util';
import { InputError } from '../../base/input-error.ts';
import { toLocKey } from '../../base/schema.ts';
import { nearestOf } from './nearest.ts';

export type OptionDeclaration = {
  readonly type: 'string' | 'boolean';
  readonly multiple?: true;
  /** What the value is, as the usage shows it: `FILE`. */
  readonly value?: string;
  readonly text: string;
  /** The variable that sets the same. */
  readonly variable?: string;
  /** The default, as the usage shows it. */
  readonly fallback?: string;
};

export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;

export type CommandDeclaration = {
  readonly name: string;
  readonly summary: string;
  /** What follows the options, as the usage shows it; undefined: nothing does. */
  readonly operands?: string;
  /** Operands must follow `--`, because they belong to another program. */
  readonly afterDashes?: true;
  readonly options: OptionDeclarations;
  /** Further lines of the usage. */
  readonly notes?: readonly string[];
  readonly examples: readonly string[];
  /** What each exit code means, in ascending order. */
  readonly exitCodes: readonly (readonly [code: string, meaning: string])[];
};

type ValueOf<D> = D extends { readonly type: 'boolean' }
  ? boolean
  : D extends { readonly multiple: true }
    ? readonly string[]
    : string;

/** The given options by name. */
export type Values<O> = { readonly [K in keyof O]?: ValueOf<O[K]> };

export type CommandLine<O> = { readonly values: Values<O>; readonly operands: readonly string[] };

/** Throws an InputError that names the option or the argument. The text of a value is never in it. */
export function parseCommandLine<const O extends OptionDeclarations>(
  command: CommandDeclaration & { readonly options: O },
  args: readonly string[],
): CommandLine<O> {
  const types = Object.entries(command.options).map(([name, { type }]) => [name, { type }] as const);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    // Strict messages of parseArgs name the rule of the parser, and not what to do.
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values: Record<string, string | boolean | readonly string[]> = {};
  const operands: string[] = [];
  let isAfterDashes = false;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') isAfterDashes = true;
    else if (token.kind === 'positional') operands.push(acceptOperand(command, token.value, isAfterDashes));
    else addOption(command, token, values);
  }
  // Each value was checked against the type that its declaration gives.
  return { values: values as Values<O>, operands };
}

/** The line that `Usage:` stands before in the errors and in the usage. */
export function usageLine({ name, operands, afterDashes, options }: CommandDeclaration): string {
  const parts = [
    `sallyport ${name}`,
    Object.keys(options).length > 0 ? '[OPTIONS]' : '',
    afterDashes ? '--' : '',
    operands ?? '',
  ];
  return parts.filter((part) => part !== '').join(' ');
}

/** `what` is missing: a command, a file. */
export function missing(command: CommandDeclaration, what: string): InputError {
  return new InputError(`missing ${what}. Usage: ${usageLine(command)}`);
}

/** `operand` is none of the words that the command takes. */
export function unexpected(command: CommandDeclaration, operand: string): InputError {
  return new InputError(`unexpected argument ${toLocKey(operand)}. Usage: ${usageLine(command)}`);
}

function acceptOperand(command: CommandDeclaration, value: string, isAfterDashes: boolean): string {
  const { name, operands, afterDashes } = command;
  if (operands === undefined)
    throw new InputError(`unexpected argument ${toLocKey(value)}: ${help(name, 'takes options only')}`);
  if (afterDashes && !isAfterDashes)
    throw new InputError(
      `unexpected argument ${toLocKey(value)}: put -- before the command, as in ${usageLine(command)}`,
    );
  return value;
}

type OptionToken = {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
};

function addOption(
  { name: command, options }: CommandDeclaration,
  { name, rawName, value, inlineValue }: OptionToken,
  values: Record<string, string | boolean | readonly string[]>,
): void {
  const declared = Object.hasOwn(options, name) ? options[name] : undefined;
  if (declared === undefined) throw unknownOption(command, rawName, Object.keys(options));
  if (declared.type === 'boolean') {
    if (inlineValue) throw new InputError(`${rawName} takes no value: write ${rawName} alone`);
    values[name] = true;
    return;
  }
  const expected = declared.value ?? 'VALUE';
  if (value === undefined || value === '')
    throw new InputError(`${rawName} needs a value: ${rawName} ${expected}`);
  // A lone `-` is standard input or output.
  if (!inlineValue && value.length > 1 && value.startsWith('-'))
    throw new InputError(
      `${rawName} needs a value, and an option follows it: ${rawName} ${expected}, or ${rawName}=${expected} if the value begins with a dash`,
    );
  const former = values[name];
  values[name] = declared.multiple ? [...(Array.isArray(former) ? former : []), value] : value;
}

function unknownOption(command: string, rawName: string, names: readonly string[]): InputError {
  const near = nearestOf(
    rawName,
    names.map((name) => `--${name}`),
  );
  const advice = near === undefined ? help(command, 'has no such option') : `did you mean ${near}?`;
  return new InputError(`unknown option ${toLocKey(rawName)}: ${advice}`);
}

function help(name: string, what: string): string {
  return `${name} ${what}; \`sallyport ${name} --help\` lists them`;
}
