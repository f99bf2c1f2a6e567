// `sallyport explain URL`: what the rules of a file, or of a running proxy, decide about one request.
import { InputError } from '../base/input-error.ts';
import { isObject } from '../base/json/json-document.ts';
import { Secret } from '../base/secret.ts';
import { compileProxyConfig } from '../policy/compile.ts';
import { parseProxyConfig } from '../policy/document/proxy-config.ts';
import type { Policy } from '../policy/policy.ts';
import type { Config } from '../sidecar/config.ts';
import { OwnListeners, egressRules } from '../sidecar/egress.ts';
import { AdminUnreachable, askAdmin } from './admin-client.ts';
import { missing, parseCommandLine } from './command/declaration.ts';
import { explainCommand } from './command/inspection-commands.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import {
  type AskedRequest,
  type Explanation,
  type ProxySettings,
  explain,
  parseAskedUrl,
} from '../sidecar/explanation.ts';
import { explanationRows, shownUrl } from '../sidecar/explanation-rows.ts';
import { recognize } from './rules/proxy-config-file.ts';
import { readConfig } from './settings.ts';

/** Exit code 0 if the request would be forwarded, 1 if it would be refused or the proxy cannot be asked, 2 for invalid input. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, operands } = parseCommandLine(explainCommand, args);
  const [url, ...more] = operands;
  if (url === undefined) throw missing(explainCommand, 'URL');
  if (more.length > 0) throw new InputError('explain takes one URL');
  const request = parseAskedUrl(url, values.method ?? 'GET');
  if (typeof request === 'string') throw new InputError(request);
  const { method: _, sandbox = 'default', json, ...flags } = values;
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  try {
    const asked = await readRules(config, sandbox);
    const policy = compile(asked, config);
    if (policy === undefined) return 2;
    const explanation = explain(request, policy, settingsOf(config));
    process.stdout.write(
      json ? toJson(request, asked.from, explanation) : toText(request, asked.from, explanation),
    );
    return explanation.outcome === 'refused' ? 1 : 0;
  } catch (error) {
    if (!(error instanceof AdminUnreachable)) throw error;
    process.stderr.write(`sallyport: ${error.message}, or name a file with --proxy-config\n`);
    return 1;
  }
}

/** The decision of the file that `config` names, otherwise of the running proxy, about `request`; for `doctor`. */
export async function explainFor(config: Config, request: AskedRequest): Promise<Explanation> {
  const policy = compile(await readRules(config, 'default'), config);
  if (policy === undefined)
    throw new InputError('the rules are invalid: `sallyport check` lists their errors');
  return explain(request, policy, settingsOf(config));
}

function settingsOf(config: Config): ProxySettings {
  const { reservedHost, scrub } = config;
  return { egress: egressRules(config, new OwnListeners()), reservedHost, masksBodies: scrub === 'body' };
}

type Asked = { readonly from: string; readonly document: unknown };

async function readRules(config: Config, sandbox: string): Promise<Asked> {
  const { proxyConfigFile: file } = config;
  if (file !== undefined) return { from: file, document: recognize(await readDocument(file)).document };
  const path = `/v1/sandboxes/${encodeURIComponent(sandbox)}/proxy_config`;
  const { status, document } = await askAdmin(config, path, { needsToken: true });
  if (status === 404) throw new InputError(`there is no sandbox ${sandbox}: \`sallyport status\` lists them`);
  if (status !== 200 || !isObject(document))
    throw new AdminUnreachable(
      `the admin API responded with ${status}: its token may be that of another proxy`,
    );
  return { from: `the running proxy, sandbox ${sandbox}`, document: recognize(document).document };
}

/** Undefined: the document is invalid, and its issues are on standard error. */
function compile({ from, document }: Asked, { allowWildcards, reservedHost }: Config): Policy | undefined {
  const parsed = parseProxyConfig(document, { allowWildcards, reservedHost });
  // Which secrets exist does not change a decision, and their values are not needed.
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => PLACEHOLDER, 1) : parsed;
  if (compiled.ok) return compiled.value;
  process.stderr.write(formatIssues(from, compiled.issues));
  return undefined;
}

const PLACEHOLDER: Secret = new Secret('placeholder');

function toJson(request: AskedRequest, from: string, explanation: Explanation): string {
  const { method } = request;
  return `${JSON.stringify({ method, url: shownUrl(request), rules_of: from, ...explanation }, null, 2)}\n`;
}

function toText(request: AskedRequest, from: string, explanation: Explanation): string {
  const [asked, ...decided] = explanationRows(request, explanation);
  const rows = [asked, ['rules of', from] as const, ...decided].filter((row) => row !== undefined);
  return rows.map(([label, text]) => `${label.padEnd(10)}${text}\n`).join('');
}
