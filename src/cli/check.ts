// `sallyport check FILE...`: lists all issues of all files. The keys of a file show whether it is a config file or a
// proxy_config.
import type { Issue } from '../base/schema.ts';
import { parseProxyConfig } from '../policy/document/proxy-config.ts';
import { parseConfig } from '../sidecar/config.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';

const proxyConfigKeys: ReadonlySet<string> = new Set(['rules', 'callbacks', 'no_proxy', 'access_control']);

/** Exit code 0 if all files are valid, 2 otherwise. */
export async function run(files: string[]): Promise<number> {
  if (files.length === 0) {
    process.stderr.write('usage: sallyport check FILE...\n');
    return 2;
  }
  let isValid = true;
  for (const file of files) {
    const { issues, warnings } = await checkFile(file);
    if (issues.length > 0) isValid = false;
    process.stdout.write(formatIssues(file, issues));
    process.stdout.write(formatIssues(`${file}: warning`, warnings));
    if (issues.length === 0) process.stdout.write(`${file}: valid\n`);
  }
  return isValid ? 0 : 2;
}

async function checkFile(file: string): Promise<{ issues: readonly Issue[]; warnings: readonly Issue[] }> {
  let document: unknown;
  try {
    document = await readDocument(file);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return { issues: [{ loc: [], msg: 'not a JSON document', type: 'json_invalid' }], warnings: [] };
  }
  const isProxyConfig =
    typeof document === 'object' &&
    document !== null &&
    Object.keys(document).some((key) => proxyConfigKeys.has(key));
  const parsed = isProxyConfig ? parseProxyConfig(document) : parseConfig(document, {});
  if (!parsed.ok) return { issues: parsed.issues, warnings: [] };
  return { issues: [], warnings: 'warnings' in parsed ? parsed.warnings : [] };
}
