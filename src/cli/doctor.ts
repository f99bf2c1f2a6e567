// `sallyport doctor [URL]`: checks what a client of a running proxy needs, and names for each failure what to do.
import { InputError } from '../base/input-error.ts';
import { type ListenAddress, formatAddress, toReachable } from '../base/listen-address.ts';
import { shellQuote } from '../base/variables/shell-export.ts';
import type { Config } from '../sidecar/config.ts';
import { type ReadAuthority, readAuthority } from './ca/certificate-file.ts';
import { type Values, parseCommandLine } from './command/declaration.ts';
import { doctorCommand } from './command/inspection-commands.ts';
import { checkClients } from './doctor/client-trust.ts';
import { type Finding, failed, ok } from './doctor/finding.ts';
import { type Reply, askProbe } from './doctor/proxied-request.ts';
import { checkUrl } from './doctor/url-checks.ts';
import { type AskedRequest, parseAskedUrl } from '../sidecar/explanation.ts';
import { caFiles, readConfig } from './settings.ts';

/** Exit code 0 if no check failed, 1 if one did, 2 for invalid input. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, operands } = parseCommandLine(doctorCommand, args);
  const [url, ...more] = operands;
  if (more.length > 0) throw new InputError('doctor takes at most one URL');
  const asked = url === undefined ? undefined : parseAskedUrl(url, 'HEAD');
  if (typeof asked === 'string') throw new InputError(asked);
  const { json, ...flags } = values;
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const findings = await examine(config, asked, envOptions(flags));
  process.stdout.write(json ? `${JSON.stringify({ findings }, null, 2)}\n` : findings.map(toText).join(''));
  return findings.some(({ state }) => state === 'failed') ? 1 : 0;
}

/** What `sallyport env` needs to find the proxy that `doctor` was asked about. */
function envOptions(flags: Values<typeof doctorCommand.options>): readonly string[] {
  const names = ['config', 'proxy-config', 'listen', 'state-dir'] as const;
  return names.flatMap((name) => {
    const value = flags[name];
    if (value === undefined) return [];
    return `--${name} ${/^[\w./:@%+-]+$/.test(value) ? value : shellQuote(value)}`;
  });
}

async function examine(
  config: Config,
  asked: AskedRequest | undefined,
  options: readonly string[],
): Promise<readonly Finding[]> {
  const proxy = toReachable(config.listen);
  const findings: Finding[] = [probeFinding(proxy, await askProbe(proxy, '/readyz'))];
  const authority = await readCa(config, findings);
  if (authority !== undefined) {
    findings.push(clockFinding(authority, Date.now()));
    findings.push(...(await checkClients(authority.certificate, process.env, options)));
  }
  if (asked !== undefined) findings.push(...(await checkUrl(config, asked, { proxy, authority })));
  return findings;
}

function probeFinding(proxy: ListenAddress, reply: Reply): Finding {
  const at = formatAddress(proxy);
  const isHere = 'start `sallyport proxy`, or set --listen (SALLYPORT_LISTEN) to its address';
  if ('failure' in reply) return failed('proxy', `${at} cannot be reached (${reply.failure})`, isHere);
  if (reply.status === 200) return ok('proxy', `${at} is ready`);
  if (reply.status === 503)
    return failed('proxy', `${at} is not ready`, 'read its log: it names what is missing');
  return failed('proxy', `${at} responds with ${reply.status}, so it is another program`, isHere);
}

async function readCa(config: Config, findings: Finding[]): Promise<ReadAuthority | undefined> {
  const { certificateFile: file } = caFiles(config);
  try {
    const authority = await readAuthority(file);
    findings.push(ok('CA', `${file}, ${authority.certificate.fingerprint256}`));
    return authority;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    findings.push(failed('CA', error.message, 'set --state-dir (SALLYPORT_STATE_DIR) to that of the proxy'));
    return undefined;
  }
}

export function clockFinding({ certificate }: ReadAuthority, nowMs: number): Finding {
  const { validFrom, validTo } = certificate;
  if (nowMs < Date.parse(validFrom))
    return failed(
      'clock',
      `the CA is valid from ${validFrom}, which is in the future`,
      'set the clock of this machine',
    );
  if (nowMs <= Date.parse(validTo)) return ok('clock', `the CA is valid until ${validTo}`);
  const cure = 'remove ca.pem and ca.key and start the proxy again, which makes another CA; or set the clock';
  return failed('clock', `the CA expired on ${validTo}`, cure);
}

function toText({ check, state, text, cure }: Finding): string {
  const line = `${{ ok: 'ok     ', failed: 'FAILED ', skipped: 'skipped' }[state]}  ${check}: ${text}\n`;
  return cure === undefined ? line : `${line}         -> ${cure}\n`;
}
