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

const CURE = 'run eval "$(sallyport env)" in the shell of the client, or start it with `sallyport run`';

/** Java reads a truststore, and an old Node needs a preload: files that `env` writes only where it is asked to. */
const CURE_WITH_FILES =
  'run eval "$(sallyport env --write DIR)" in the shell of the client, or start it with `sallyport run`';

/** `ca`: of the proxy. */
export async function checkClients(ca: X509Certificate, env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const findings: Finding[] = [proxyVariable(env)];
  for (const client of clients) findings.push(await checkClient(client, ca.fingerprint256, env));
  findings.push(await checkJava(ca, env));
  // With the preload of `sallyport env` old versions use the proxy too.
  const isHelped = hasPreload(env['NODE_OPTIONS']);
  const warning = isHelped ? undefined : await oldNodeWarning('node', env);
  if (warning !== undefined)
    findings.push(failed('Node version', warning, `use a newer Node, or ${CURE_WITH_FILES}`));
  return findings;
}

function proxyVariable(env: NodeJS.ProcessEnv): Finding {
  const isSet = ['HTTPS_PROXY', 'https_proxy'].some((name) => (env[name] ?? '') !== '');
  // The value may hold the token of the proxy.
  return isSet
    ? ok('HTTPS_PROXY', 'is set')
    : failed('HTTPS_PROXY', 'is not set, so clients of this shell do not use the proxy', CURE);
}

async function checkClient(client: Client, fingerprint: string, env: NodeJS.ProcessEnv): Promise<Finding> {
  const { program, variables, usesSystemRoots } = client;
  const check = `CA in ${program}`;
  if ((await findProgram(program, env)) === undefined) return skipped(check, `${program} is not installed`);
  const name = variables.find((variable) => (env[variable] ?? '') !== '');
  if (name === undefined) {
    if (usesSystemRoots && hasCertificate(systemRoots(), fingerprint))
      return ok(check, 'among the roots of the system');
    const names = variables.length === 1 ? `${variables[0]} is` : `${variables.join(' and ')} are`;
    return failed(check, `${program} does not trust the CA: ${names} not set`, CURE);
  }
  const file = env[name] ?? '';
  try {
    const blocks = certificateBlocks(await readFile(file, 'utf8'));
    if (hasCertificate(blocks, fingerprint)) return ok(check, `${name} names a file with the CA`);
    return failed(check, `${file} (${name}) does not contain the CA of this proxy`, CURE);
  } catch (error) {
    return failed(check, `${file} (${name}) cannot be read: ${String(codeOf(error))}`, CURE);
  }
}

/** A truststore may be encrypted, so of one that is named only that is checked. */
async function checkJava({ raw }: X509Certificate, env: NodeJS.ProcessEnv): Promise<Finding> {
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
  return failed(check, text, CURE_WITH_FILES);
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
