// Whether the clients that are installed trust the CA of the proxy in this environment, and use the proxy. Reads the files
// that their variables name; starts no client but `node --version`.
import { X509Certificate } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '../../tls/pem-files.ts';
import { certificateBlocks } from '../../tls/pem.ts';
import { systemRoots } from '../../tls/system-roots.ts';
import { hasPreload } from '../client/node-preload.ts';
import { findProgram, oldNodeWarning } from '../process/old-node.ts';
import { type Finding, failed, ok, skipped } from './finding.ts';

type Client = {
  readonly program: string;
  /** Variables that name a file of CA certificates; the first that is set decides. */
  readonly variables: readonly string[];
  /** Without a variable it trusts the roots of the system. */
  readonly usesSystemRoots: boolean;
};

const clients: readonly Client[] = [
  { program: 'curl', variables: ['CURL_CA_BUNDLE', 'SSL_CERT_FILE'], usesSystemRoots: true },
  { program: 'node', variables: ['NODE_EXTRA_CA_CERTS'], usesSystemRoots: false },
  { program: 'python3', variables: ['REQUESTS_CA_BUNDLE', 'SSL_CERT_FILE'], usesSystemRoots: true },
  { program: 'git', variables: ['GIT_SSL_CAINFO'], usesSystemRoots: true },
];

/** `options`: of the `sallyport env` to run, as they are written in a shell. */
function cureWith(options: readonly string[]): string {
  const command = ['sallyport env', ...options].join(' ');
  return `run eval "$(${command})" in the shell of the client, or start it with \`sallyport run\``;
}

/** `ca`: of the proxy. `options`: those with which `env` finds the same proxy. */
export async function checkClients(
  ca: X509Certificate,
  env: NodeJS.ProcessEnv,
  options: readonly string[] = [],
): Promise<readonly Finding[]> {
  const cure = cureWith(options);
  // Java reads a truststore, and an old Node needs a preload: files that `env` writes only where it is asked to.
  const cureWithFiles = cureWith([...options, '--write DIR']);
  const findings: Finding[] = [proxyVariable(env, cure)];
  for (const client of clients) findings.push(await checkClient(client, { ca, env, cure }));
  findings.push(await checkJava({ ca, env, cure: cureWithFiles }));
  // With the preload of `sallyport env` old versions use the proxy too.
  const isHelped = hasPreload(env['NODE_OPTIONS']);
  const warning = isHelped ? undefined : await oldNodeWarning('node', env);
  if (warning !== undefined)
    findings.push(failed('Node version', warning, `use a newer Node, or ${cureWithFiles}`));
  return findings;
}

function proxyVariable(env: NodeJS.ProcessEnv, cure: string): Finding {
  const isSet = ['HTTPS_PROXY', 'https_proxy'].some((name) => (env[name] ?? '') !== '');
  // The value may hold the token of the proxy.
  return isSet
    ? ok('HTTPS_PROXY', 'is set')
    : failed('HTTPS_PROXY', 'is not set, so clients of this shell do not use the proxy', cure);
}

type Wanted = { readonly ca: X509Certificate; readonly env: NodeJS.ProcessEnv; readonly cure: string };

async function checkClient(client: Client, { ca, env, cure }: Wanted): Promise<Finding> {
  const { fingerprint256: fingerprint } = ca;
  const { program, variables, usesSystemRoots } = client;
  const check = `CA in ${program}`;
  if ((await findProgram(program, env)) === undefined) return skipped(check, `${program} is not installed`);
  const name = variables.find((variable) => (env[variable] ?? '') !== '');
  if (name === undefined) {
    if (usesSystemRoots && hasCertificate(systemRoots(), fingerprint))
      return ok(check, 'among the roots of the system');
    const names = variables.length === 1 ? `${variables[0]} is` : `${variables.join(' and ')} are`;
    return failed(check, `${program} does not trust the CA: ${names} not set`, cure);
  }
  const file = env[name] ?? '';
  try {
    const blocks = certificateBlocks(await readFile(file, 'utf8'));
    if (hasCertificate(blocks, fingerprint)) return ok(check, `${name} names a file with the CA`);
    return failed(check, `${file} (${name}) does not contain the CA of this proxy`, cure);
  } catch (error) {
    return failed(check, `${file} (${name}) cannot be read: ${String(codeOf(error))}`, cure);
  }
}

/** A truststore may be encrypted, so of one that is named only that is checked. */
async function checkJava({ ca: { raw }, env, cure }: Wanted): Promise<Finding> {
  const check = 'CA in java';
  const program = await findProgram('java', env);
  if (program === undefined) return skipped(check, 'java is not installed');
  const options = `${env['JAVA_TOOL_OPTIONS'] ?? ''} ${env['JDK_JAVA_OPTIONS'] ?? ''}`;
  if (options.includes('-Djavax.net.ssl.trustStore='))
    return ok(check, 'a truststore is named; its content was not read');
  const store = await readDefaultTruststore(program);
  // In JKS, and in PKCS#12 without a password, a certificate stands as it is.
  if (store?.content.includes(raw)) return ok(check, `${store.file} contains it`);
  const found = store === undefined ? 'it has no truststore' : `${store.file} lacks it or is encrypted`;
  const text = `java does not trust the CA: JAVA_TOOL_OPTIONS names no -Djavax.net.ssl.trustStore, and ${found}`;
  return failed(check, text, cure);
}

/** The one that this Java reads without the option: the first of these that exists. `jre` is a part of JDK 8. */
async function readDefaultTruststore(program: string) {
  const home = dirname(dirname(await realpath(program)));
  for (const part of ['', 'jre'])
    for (const name of ['jssecacerts', 'cacerts']) {
      const file = join(home, part, 'lib', 'security', name);
      const content = await readFile(file).catch(() => undefined);
      if (content !== undefined) return { file, content };
    }
  return undefined;
}

function hasCertificate(blocks: readonly string[], fingerprint: string): boolean {
  return blocks.some((block) => {
    try {
      return new X509Certificate(block).fingerprint256 === fingerprint;
    } catch {
      return false; // not a certificate of X.509, so not ours
    }
  });
}
