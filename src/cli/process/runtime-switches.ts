// Rejects runtime switches in the environment that break the proxy's promises: foreign code in the process that holds the
// secrets, access to its memory, TLS without verification. Code that such a switch loads has already run by now, so this
// prevents accidents, for example by a base image; only the user who starts the process can prevent more.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { InputError } from '../../base/input-error.ts';

/** Sizes, warnings, and switches that make the process stricter. Any other switch could load code or expose memory. */
const harmless: ReadonlySet<string> = new Set([
  '--max-old-space-size',
  '--max-old-space-size-percentage',
  '--max-semi-space-size',
  '--max-heap-size',
  '--stack-trace-limit',
  '--v8-pool-size',
  '--use-largepages',
  '--warnings',
  '--deprecation',
  '--pending-deprecation',
  '--trace-warnings',
  '--trace-deprecation',
  '--throw-deprecation',
  '--disable-warning',
  '--redirect-warnings',
  '--disable-sigusr1',
  '--disable-proto',
  '--report-exclude-env',
  '--report-exclude-network',
  '--disallow-code-generation-from-strings',
  '--zero-fill-buffers',
  '--secure-heap',
  '--secure-heap-min',
  '--enable-fips',
  '--force-fips',
  '--tls-min-v1.2',
  '--tls-min-v1.3',
  '--dns-result-order',
]);

/** Switches that may be negated; the negation of any other would make the process less strict. */
const NEGATABLE = /^--no-(warnings|deprecation|pending-deprecation|trace-warnings|trace-deprecation)$/;

/**
 * Throws an InputError that names the variable and says what to do. Must be called before a secret is read. `hint`:
 * another solution that the command offers.
 */
export function refuseRuntimeSwitches(env: NodeJS.ProcessEnv, hint = ''): void {
  const refused = refusedSwitch(env['NODE_OPTIONS'] ?? '');
  if (refused !== undefined)
    throw new InputError(
      `NODE_OPTIONS has ${refused}, which could load code into this process, expose its memory or weaken its checks: ` +
        `remove it there (heap sizes and switches for warnings are allowed)${hint}`,
    );
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0')
    throw new InputError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 would accept any certificate: unset it, and set SALLYPORT_UPSTREAM_CA to your CA',
    );
  const reported = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE'].find((name) => (env[name] ?? '') !== '');
  if (reported !== undefined)
    throw new InputError(
      `${reported} makes the runtime write traffic to standard error: unset it, and use SALLYPORT_LOG_LEVEL`,
    );
}

/** An option of NODE_OPTIONS that loads the preload of `run` and `env` (client/node-preload.ts). */
export const ownPreload: RegExp = /(?:^|\s)--require=[^\s"]*\/agent-preload-[0-9a-f]{16}\.cjs(?=\s|$)/g;

// The text itself would be loaded at each start.
const PRELOAD_SHA256 = '26726acf9a379af6e6500b04b73cf28336813b20861dd0b837c7055daa8de3e7';

/**
 * The variables without a preload that Sallyport added, so that a shell which evaluated `sallyport env` can start it. The
 * file must have exactly our text: any other could run code in the process that holds the secrets.
 */
export function withoutOwnPreload(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const options = env['NODE_OPTIONS'];
  if (options === undefined) return env;
  return {
    ...env,
    NODE_OPTIONS: options.replaceAll(ownPreload, (option) => (isOwnText(option) ? '' : option)),
  };
}

function isOwnText(option: string): boolean {
  try {
    const text = readFileSync(option.trim().slice('--require='.length));
    return createHash('sha256').update(text).digest('hex') === PRELOAD_SHA256;
  } catch {
    return false; // the switch is refused by its name
  }
}

/** The first switch that is not allowed in NODE_OPTIONS, without its value. */
export function refusedSwitch(options: string): string | undefined {
  const switches = words(options).filter((word) => word.startsWith('-'));
  return switches.map(nameOf).find((name) => !harmless.has(name) && !NEGATABLE.test(name));
}

/** As in Node: `_` equals `-`, and a value follows `=`. */
function nameOf(word: string): string {
  const [name = ''] = word.split('=', 1);
  return name.replaceAll('_', '-');
}

/** Splits as Node does: at spaces, but not between double quotes, where a backslash escapes the next character. */
function words(options: string): string[] {
  const found: string[] = [];
  for (const [word] of options.matchAll(/(?:"(?:\\[^]|[^"\\])*"?|[^ "])+/g)) {
    found.push(
      word.replaceAll(/"((?:\\[^]|[^"\\])*)"?/g, (_, quoted: string) => quoted.replaceAll(/\\([^])/g, '$1')),
    );
  }
  return found;
}
