// What every command with a proxy does before it reads its config: rejects switches that weaken the process, moves secrets
// out of the environment, and prevents core dumps.
import { claimSecrets, handOverSecretVariables } from '../../sidecar/secret-environment.ts';
import { unknownVariableWarnings } from '../unknown-variables.ts';
import { preventCoreDumps } from './core-dumps.ts';
import { refuseRuntimeSwitches, withoutOwnPreload } from './runtime-switches.ts';

/** May replace the process (see secret-environment.ts). `fd`: of --secrets-fd; `hint`: see refuseRuntimeSwitches(). */
export function prepareProcess(fd?: number, hint?: string) {
  refuseRuntimeSwitches(withoutOwnPreload(process.env), hint);
  handOverSecretVariables(fd);
  // Before anything that can fail: what is not claimed remains on disk as a file.
  const handed = claimSecrets(process.env);
  const cores = preventCoreDumps();
  return { handed, cores, warnings: [...cores.warnings, ...environmentWarnings(process.env)] };
}

/** Variables that have no effect: those of other programs, and unknown ones that are named like settings. */
function environmentWarnings(env: NodeJS.ProcessEnv): string[] {
  const isSet = (name: string): boolean => env[name] !== undefined || env[name.toLowerCase()] !== undefined;
  const ignored = Object.entries(WITHOUT_EFFECT).filter(([name]) => isSet(name));
  return [
    ...ignored.map(([name, reason]) => `${name} has no effect on the proxy itself: ${reason}`),
    ...unknownVariableWarnings(env),
  ];
}

const DIRECT = 'it connects to upstreams directly';
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: 'set SALLYPORT_UPSTREAM_CA to the file instead',
  HTTPS_PROXY: DIRECT,
  HTTP_PROXY: DIRECT,
  ALL_PROXY: DIRECT,
  NO_PROXY: `${DIRECT}; hosts that must not be intercepted are in \`no_proxy\` of proxy_config`,
  NODE_USE_ENV_PROXY: DIRECT,
};
