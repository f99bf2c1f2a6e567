// Variables that look like settings of the platform and are none: warnings for whoever starts one of its programs.
import { platformVariables } from '../../platform/config.ts';
import { unknownVariableWarnings } from '../unknown-variables.ts';

/** A misspelt setting would have no effect: a command would work on another directory or database than the operator means. */
export function misspeltVariables(): readonly string[] {
  const known = [...platformVariables().map(({ name }) => name), 'SALLYPORT_BOOTSTRAP_API_KEY'];
  return unknownVariableWarnings(process.env, known);
}
