// Switches of the runtime in the environment that undo what the proxy promises: code from elsewhere in the process that
// holds the secrets, a door into its memory, TLS that trusts anybody. What was loaded before this line has run already, so
// this holds off accidents and images that set such a thing for everybody; only whoever starts the process can do more.
import { InputError } from '../../base/input-error.ts';

/** Sizes, warnings, and what only makes the process stricter. Every other switch could load, show or loosen something. */
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

/** Their opposites loosen what they make stricter. */
const NEGATABLE = /^--no-(warnings|deprecation|pending-deprecation|trace-warnings|trace-deprecation)$/;

/**
 * Throws an InputError that names the variable and what to do instead. To be called before a secret is read.
 * `further`: one more way out, for a program that has one.
 */
export function refuseRuntimeSwitches(env: NodeJS.ProcessEnv, further: string = ''): void {
  const refused = refusedSwitch(env['NODE_OPTIONS'] ?? '');
  if (refused !== undefined)
    throw new InputError(
      `NODE_OPTIONS has ${refused}, which could load code into this process, show its memory or loosen its checks: ` +
        `unset NODE_OPTIONS here (sizes of the heap and switches for warnings may stay)${further}`,
    );
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0')
    throw new InputError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 would trust any host: unset it, and name your CA in SALLYPORT_UPSTREAM_CA',
    );
  const reported = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE'].find((name) => (env[name] ?? '') !== '');
  if (reported !== undefined)
    throw new InputError(
      `${reported} would have the runtime write what passes to standard error: unset it, and use SALLYPORT_LOG_LEVEL`,
    );
}

/** The first switch that may not stand in NODE_OPTIONS, without its value. */
export function refusedSwitch(options: string): string | undefined {
  const switches = words(options).filter((word) => word.startsWith('-'));
  return switches.map(nameOf).find((name) => !harmless.has(name) && !NEGATABLE.test(name));
}

/** As Node has it: `_` for `-`, the value behind `=`. */
function nameOf(word: string): string {
  const [name = ''] = word.split('=', 1);
  return name.replaceAll('_', '-');
}

/** As Node splits the variable: at spaces, but not between double quotes, where a backslash keeps what follows it. */
function words(options: string): string[] {
  const found: string[] = [];
  for (const [word] of options.matchAll(/(?:"(?:\\[^]|[^"\\])*"?|[^ "])+/g)) {
    found.push(
      word.replaceAll(/"((?:\\[^]|[^"\\])*)"?/g, (_, quoted: string) => quoted.replaceAll(/\\([^])/g, '$1')),
    );
  }
  return found;
}
