// `sallyport check FILE...`: lists all issues of all files. The keys of a file show whether it is a config file or a
// proxy_config.
import { InputError } from '../base/input-error.ts';
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
  const results: boolean[] = [];
  for (const file of files) results.push(await isValid(file));
  return results.every(Boolean) ? 0 : 2;
}

async function isValid(file: string): Promise<boolean> {
  try {
    const parsed = parse(await readDocument(file));
    if (!parsed.ok) {
      process.stdout.write(formatIssues(file, parsed.issues));
      return false;
    }
    if ('warnings' in parsed) process.stdout.write(formatIssues(`${file}: warning`, parsed.warnings));
    process.stdout.write(`${file}: valid\n`);
    return true;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return false;
  }
}

function parse(document: unknown): ReturnType<typeof parseProxyConfig> | ReturnType<typeof parseConfig> {
  const isProxyConfig =
    typeof document === 'object' &&
    document !== null &&
    Object.keys(document).some((key) => proxyConfigKeys.has(key));
  return isProxyConfig ? parseProxyConfig(document) : parseConfig(document, {});
}
