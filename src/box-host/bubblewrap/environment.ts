// The environment of the programs in a box: what makes its clients use the proxy and trust its CA, and the box's own
// variables. Nothing of the host.
import { extraVariable, programBundleVariables, sharedBundleVariables } from '../../tls/trust-variables.ts';
import { boxUser, caBundlePath } from './etc-files.ts';

/** The proxy listens inside the network namespace of the box, so every box has the same address for it. */
export const proxyPort = 3128;

export type BoxVariables = {
  /** `env_vars` of the rules: placeholders for keys. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Those of the box itself, which replace defaults; the variables of the proxy stay. */
  readonly own: Readonly<Record<string, string>>;
};

export function boxEnvironment({ placeholders, own }: BoxVariables): Readonly<Record<string, string>> {
  const variables = proxyVariables(`http://127.0.0.1:${proxyPort}`, caBundlePath);
  return { ...defaults, ...placeholders, ...own, ...variables };
}

const defaults: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: boxUser.home,
  USER: boxUser.name,
  LOGNAME: boxUser.name,
  SHELL: '/bin/sh',
  LANG: 'C.UTF-8',
};

/** What makes clients use the proxy at `proxyUrl` and trust the certificates in `bundleFile`. */
export function proxyVariables(proxyUrl: string, bundleFile: string): Readonly<Record<string, string>> {
  return {
    ...inBothCases(
      ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'GRPC_PROXY', 'WS_PROXY', 'WSS_PROXY'],
      proxyUrl,
    ),
    ...inBothCases(['NO_PROXY'], 'localhost,127.0.0.1,::1'),
    // Without it Node reads none of the above.
    NODE_USE_ENV_PROXY: '1',
    YARN_HTTPS_PROXY: proxyUrl,
    YARN_HTTP_PROXY: proxyUrl,
    PERL_LWP_ENV_PROXY: '1',
    ...Object.fromEntries(
      [...sharedBundleVariables, ...Object.values(programBundleVariables), extraVariable].map((name) => [
        name,
        bundleFile,
      ]),
    ),
  };
}

function inBothCases(names: readonly string[], value: string): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => [
      [name, value],
      [name.toLowerCase(), value],
    ]),
  );
}
