// Finds variables of the caller that are named like a secret of the rules: the command would hold the credential that the
// proxy is there to keep from it. Looks at names only.
import { parseSecretTemplate } from '../../policy/document/header-rules.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';

/** One sentence for each. `replaced`: the variables that are set over the caller's. */
export function exposedSecretWarnings(
  config: ProxyConfig | undefined,
  caller: NodeJS.ProcessEnv,
  replaced: Readonly<Record<string, string>>,
): readonly string[] {
  const exposed = secretNames(config).filter(
    (name) => (caller[name] ?? '') !== '' && !Object.hasOwn(replaced, name),
  );
  return exposed.map(
    (name) =>
      `${name} of your environment is passed on, and the rules inject a secret of that name: ` +
      `unset it, or replace it with a placeholder (env_vars of the rule)`,
  );
}

/** Of the enabled rules, each once. */
function secretNames(config: ProxyConfig | undefined): readonly string[] {
  const headers = (config?.rules ?? []).filter(({ enabled }) => enabled).flatMap((rule) => rule.headers);
  const names = headers.flatMap((header) => {
    const template = header.type === 'workspace_secret' ? parseSecretTemplate(header.value) : '';
    if (typeof template === 'string') return [];
    return template.parts.flatMap((part) => (typeof part === 'string' ? [] : [part.secret]));
  });
  return [...new Set(names)];
}
