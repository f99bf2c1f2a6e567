// Finds variables of the caller that are named like a secret of the rules: the command would hold the credential that the
// proxy is there to keep from it. Looks at names only.
import { secretNamesOf } from '../../policy/compile.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';

/** One sentence for each. `replaced`: the variables that are set over the caller's. */
export function exposedSecretWarnings(
  config: ProxyConfig | undefined,
  caller: NodeJS.ProcessEnv,
  replaced: Readonly<Record<string, string>>,
): readonly string[] {
  const exposed = (config ? secretNamesOf(config) : []).filter(
    (name) => (caller[name] ?? '') !== '' && !Object.hasOwn(replaced, name),
  );
  return exposed.map(
    (name) =>
      `${name} of your environment is passed on, and the rules inject a secret of that name: ` +
      `unset it, or replace it with a placeholder (env_vars of the rule)`,
  );
}
