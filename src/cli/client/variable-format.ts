// The formats in which `sallyport env` prints variables. A value that a format cannot hold is left out, never altered.
import { InputError } from '../../base/input-error.ts';
import { shellExport } from '../../base/variables/shell-export.ts';

const FORMATS = ['sh', 'dotenv', 'json', 'docker'] as const;
export type VariableFormat = (typeof FORMATS)[number];

/** The value of --format. */
export function parseVariableFormat(given: string | undefined): VariableFormat {
  const format = FORMATS.find((one) => one === (given ?? 'sh'));
  if (format === undefined) throw new InputError(`--format must be one of ${FORMATS.join(', ')}`);
  return format;
}

/** `omitted`: the names of the variables whose values the format cannot hold. */
export function formatVariables(
  variables: Readonly<Record<string, string>>,
  format: VariableFormat,
): { readonly text: string; readonly omitted: readonly string[] } {
  if (format === 'json') return { text: `${JSON.stringify(variables, null, 2)}\n`, omitted: [] };
  const lines = Object.entries(variables).map(([name, value]) => ({
    name,
    line: lineOf(name, value, format),
  }));
  return {
    text: lines.map(({ line }) => line ?? '').join(''),
    omitted: lines.flatMap(({ name, line }) => (line === undefined ? name : [])),
  };
}

function lineOf(name: string, value: string, format: 'sh' | 'dotenv' | 'docker'): string | undefined {
  if (format === 'sh') return shellExport(name, value);
  if (/[\r\n]/.test(value)) return undefined;
  // docker run --env-file takes everything behind the sign as it is.
  if (format === 'docker') return `${name}=${value}\n`;
  // Parsers of dotenv disagree about every escape: only values that need none.
  if (!value.includes("'")) return `${name}='${value}'\n`;
  return /["\\$`]/.test(value) ? undefined : `${name}="${value}"\n`;
}
