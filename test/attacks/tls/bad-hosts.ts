// Hosts that do not prove their name, or not in an acceptable way: the list is badssl's (Apache-2.0), the certificates are
// created here by openssl. One listener selects the certificate by SNI, speaks HTTP/1.1 and HTTP/2, and stores every byte
// that clients send nevertheless. Independent of the proxy.
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type SecureContextOptions, TLSSocket, createSecureContext } from 'node:tls';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { createScratch } from '../../support/scratch.ts';
import { proxyAuthority } from '../../support/test-sidecar.ts';
import { runProgram } from '../../tls/external-program.ts';

/** How openssl creates a certificate: extensions, issuer, and further arguments. */
type Recipe = {
  readonly by?: string;
  readonly ext?: readonly string[];
  readonly subject?: string;
  readonly args?: readonly string[];
  readonly key?: readonly string[];
  /** Certificates that are sent after the leaf. */
  readonly chain?: readonly string[];
  readonly tls?: SecureContextOptions;
  /** The host requests a client certificate, and may require it. */
  readonly clientCertificate?: 'optional' | 'required';
};

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
const CA = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'];

const issuers: Readonly<Record<string, Recipe>> = {
  root: { ext: CA },
  foreignRoot: { ext: CA },
  middle: { by: 'root', ext: CA },
  constrained: { by: 'root', ext: [...CA, 'nameConstraints=critical,permitted;DNS:ok.test'] },
  excluded: { by: 'root', ext: [...CA, 'nameConstraints=critical,excluded;DNS:bad.test'] },
  last: { by: 'root', ext: ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign'] },
  'below-last': { by: 'last', ext: CA },
  'no-ca': { by: 'root', ext: ['basicConstraints=critical,CA:FALSE'] },
  'no-constraints': { by: 'root', ext: ['keyUsage=critical,digitalSignature'] },
  'no-cert-sign': { by: 'root', ext: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,cRLSign'] },
  'a-leaf': { by: 'root', ext: ['subjectAltName=DNS:leaf.bad.test'] },
  'for-clients': { by: 'root', ext: [...CA, 'extendedKeyUsage=clientAuth'] },
};

/** Keyed by the name below `bad.test`, which is also the default subjectAltName. */
const leaves: Readonly<Record<string, Recipe>> = {
  good: { by: 'root' },
  'good-by-a-middle': { by: 'middle', chain: ['middle'] },
  'self-signed': {},
  'untrusted-root': { by: 'foreignRoot' },
  'untrusted-root-in-chain': { by: 'foreignRoot', chain: ['foreignRoot'] },
  'incomplete-chain': { by: 'middle' },
  'wrong-chain': { by: 'middle', chain: ['constrained'] },
  'wrong-host': { by: 'root', ext: ['subjectAltName=DNS:good.bad.test'] },
  'name-in-cn-only': {
    by: 'root',
    ext: ['keyUsage=digitalSignature'],
    subject: '/CN=name-in-cn-only.bad.test',
  },
  'name-in-cn-and-another-in-san': {
    by: 'root',
    ext: ['subjectAltName=DNS:good.bad.test'],
    subject: '/CN=name-in-cn-and-another-in-san.bad.test',
  },
  'address-only': { by: 'root', ext: ['subjectAltName=IP:127.0.0.1'] },
  'mail-only': { by: 'root', ext: ['subjectAltName=email:root@mail-only.bad.test'] },
  'uri-only': { by: 'root', ext: ['subjectAltName=URI:https://uri-only.bad.test/'] },
  'below.wildcard': { by: 'root', ext: ['subjectAltName=DNS:*.bad.test'] },
  'wildcard-of-everything': { by: 'root', ext: ['subjectAltName=DNS:*'] },
  'wildcard-of-two': { by: 'root', ext: ['subjectAltName=DNS:*.*.test'] },
  'inner-wildcard': { by: 'root', ext: ['subjectAltName=DNS:inner-wildcard.*.test'] },
  'wildcard-above': { by: 'root', ext: ['subjectAltName=DNS:*.wildcard-above.bad.test'] },
  suffix: { by: 'root', ext: ['subjectAltName=DNS:bad.test'] },
  'constrained-elsewhere': { by: 'constrained', chain: ['constrained'] },
  'excluded-here': { by: 'excluded', chain: ['excluded'] },
  sha1: { by: 'root', args: ['-sha1'], chain: [], key: ['-newkey', 'rsa:2048'] },
  'rsa-1024': { by: 'root', key: ['-newkey', 'rsa:1024'] },
  'for-clients-only': {
    by: 'root',
    ext: ['subjectAltName=DNS:for-clients-only.bad.test', 'extendedKeyUsage=clientAuth'],
  },
  'tls-1-0': { by: 'root', tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0' } },
  'tls-1-1': {
    by: 'root',
    tls: { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' },
  },
  'null-cipher': { by: 'root', tls: { maxVersion: 'TLSv1.2', ciphers: 'eNULL:@SECLEVEL=0' } },
  'anonymous-cipher': { by: 'root', tls: { maxVersion: 'TLSv1.2', ciphers: 'aNULL:@SECLEVEL=0' } },
  'requests-a-certificate': { by: 'root', clientCertificate: 'optional', tls: {} },
  'requires-a-certificate': { by: 'root', clientCertificate: 'required', tls: {} },
  'requests-a-certificate-by-tls-1-2': {
    by: 'root',
    clientCertificate: 'optional',
    tls: { maxVersion: 'TLSv1.2' },
  },
  'requires-a-certificate-by-tls-1-2': {
    by: 'root',
    clientCertificate: 'required',
    tls: { maxVersion: 'TLSv1.2' },
  },
  'requests-a-proxy-certificate': {
    by: 'root',
    clientCertificate: 'optional',
    tls: { ca: proxyAuthority.certificatePem },
  },
  'by-no-ca': { by: 'no-ca', chain: ['no-ca'] },
  'by-no-constraints': { by: 'no-constraints', chain: ['no-constraints'] },
  'by-a-leaf': { by: 'a-leaf', chain: ['a-leaf'] },
  'by-no-cert-sign': { by: 'no-cert-sign', chain: ['no-cert-sign'] },
  'below-the-last': { by: 'below-last', chain: ['below-last', 'last'] },
  'by-one-for-clients': { by: 'for-clients', chain: ['for-clients'] },
  'unknown-and-critical': {
    by: 'root',
    ext: ['subjectAltName=DNS:unknown-and-critical.bad.test', '1.2.3.4=critical,ASN1:UTF8String:x'],
  },
};

/** Encoded here, because the openssl command line cannot express it. */
const OWN = [
  'expired',
  'not-yet-valid',
  'proxy-ca',
  'proxy-ca-as-leaf',
  'proxy-ca-with-the-root',
  'proxy-ca-for-another',
];

export const badNames: readonly string[] = [...Object.keys(leaves), ...OWN].map((name) => `${name}.bad.test`);

export type BadHosts = AsyncDisposable & {
  /** The port of the host with this name. */
  portOf(name: string): number;
  /** The roots that the operator trusts. */
  readonly trustedPem: string;
  /** All bytes that arrived after a handshake. */
  readonly received: () => number;
  /** Certificates that clients sent. */
  readonly clientCertificates: () => number;
};

export async function createBadHosts(): Promise<BadHosts> {
  await using scratch = await createScratch();
  const made = new Map<string, { cert: string; key: string }>();
  const make = async (name: string, recipe: Recipe): Promise<void> => {
    const at = (file: string): string => join(scratch.path, file);
    const {
      by,
      ext = [`subjectAltName=DNS:${name}.bad.test`],
      subject = `/CN=${name.slice(0, 60)}`,
    } = recipe;
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
    const issuer = by === undefined ? [] : ['-CA', at(`${by}.pem`), '-CAkey', at(`${by}.key`)];
    const more = [...(recipe.key ?? CURVE), ...(recipe.args ?? []), ...issuer, ...files];
    // Without its own configuration file openssl would add the default extensions of the machine.
    const config = await scratch.write('req.cnf', '[req]\ndistinguished_name=dn\n[dn]\n');
    const exts = ext.flatMap((one) => ['-addext', one]);
    await runProgram('openssl', [
      'req',
      '-x509',
      '-config',
      config,
      '-nodes',
      '-subj',
      subject,
      ...exts,
      ...more,
    ]);
    const [cert, key] = [
      await readFile(at(`${name}.pem`), 'utf8'),
      await readFile(at(`${name}.key`), 'utf8'),
    ];
    made.set(name, { cert, key });
  };
  for (const [name, recipe] of Object.entries(issuers)) await make(name, recipe);
  const contexts = new Map<string, SecureContextOptions>();
  for (const [name, recipe] of Object.entries(leaves)) {
    await make(name, recipe);
    const { cert = '', key = '' } = made.get(name) ?? {};
    const chain = (recipe.chain ?? []).map((one) => made.get(one)?.cert ?? '');
    contexts.set(`${name}.bad.test`, {
      cert: [cert, ...chain].join(''),
      key,
      ciphers: 'DEFAULT:@SECLEVEL=0',
      ...recipe.tls,
    });
  }
  const dated = createCertificateAuthority({ commonName: 'Dated', now: new Date('2020-01-01T00:00:00Z') });
  for (const [name, context] of Object.entries(ownContexts(dated))) contexts.set(`${name}.bad.test`, context);
  const trustedPem = (made.get('root')?.cert ?? '') + dated.certificatePem;
  // Version and cipher are chosen before SNI is read: a host that limits them has its own listener.
  const alone = Object.keys(leaves)
    .filter((name) => leaves[name]?.tls)
    .map((name) => `${name}.bad.test`);
  const together = new Map([...contexts].filter(([name]) => !alone.includes(name)));
  const listeners = new Map<string, Listener>();
  for (const name of alone)
    listeners.set(
      name,
      await listen(
        new Map([[name, contexts.get(name) ?? {}]]),
        leaves[name.replace(/\.bad\.test$/, '')]?.clientCertificate,
      ),
    );
  const others = await listen(together);
  const all = [...listeners.values(), others];
  const sum = (count: (one: Listener) => number): number => all.reduce((total, one) => total + count(one), 0);
  return {
    trustedPem,
    portOf: (name) => (listeners.get(name) ?? others).port,
    received: () => sum(({ received }) => received()),
    clientCertificates: () => sum(({ clientCertificates }) => clientCertificates()),
    async [Symbol.asyncDispose]() {
      for (const one of all) await one[Symbol.asyncDispose]();
    },
  };
}

type Authority = Pick<typeof proxyAuthority, 'issueLeaf'>;

function ownContexts(dated: Authority): Readonly<Record<string, SecureContextOptions>> {
  const issue = (by: Authority, name: string, at: Date): SecureContextOptions => {
    const { chainPem, keyPem } = by.issueLeaf({ host: `${name}.bad.test`, kind: 'name' }, at);
    return { cert: chainPem, key: keyPem };
  };
  const now = new Date();
  const byProxyCa = issue(proxyAuthority, 'proxy-ca-with-the-root', now);
  return {
    expired: issue(dated, 'expired', new Date(now.getTime() - 30 * 864e5)),
    'not-yet-valid': issue(dated, 'not-yet-valid', new Date(now.getTime() + 30 * 864e5)),
    'proxy-ca': issue(proxyAuthority, 'proxy-ca', now),
    'proxy-ca-as-leaf': issue(proxyAuthority, 'proxy-ca-as-leaf', new Date(now.getTime() - 864e5)),
    'proxy-ca-with-the-root': { ...byProxyCa, cert: String(byProxyCa.cert) + proxyAuthority.certificatePem },
    'proxy-ca-for-another': issue(proxyAuthority, 'good', now),
  };
}

type Listener = Pick<BadHosts, 'received' | 'clientCertificates'> &
  AsyncDisposable & { readonly port: number };

async function listen(
  contexts: ReadonlyMap<string, SecureContextOptions>,
  clientCertificate?: Recipe['clientCertificate'],
): Promise<Listener> {
  let [received, clientCertificates] = [0, 0];
  const open = new Set<Socket>();
  const built = new Map([...contexts].map(([name, options]) => [name, createSecureContext(options)]));
  const first = [...built.values()][0];
  const server = createServer((raw) => {
    open.add(raw);
    raw.on('error', () => raw.destroy()).on('close', () => open.delete(raw));
    const socket = new TLSSocket(raw, {
      isServer: true,
      requestCert: clientCertificate !== undefined,
      rejectUnauthorized: false,
      ...(first ? { secureContext: first } : {}),
      ALPNCallback: ({ protocols }) => protocols[0],
      SNICallback: (name, done) => done(null, built.get(name)),
    });
    socket.on('error', () => raw.destroy());
    socket.on('secure', () => {
      if (Object.keys(socket.getPeerCertificate()).length > 0) clientCertificates += 1;
      else if (clientCertificate === 'required') raw.destroy();
    });
    socket.on('data', (piece: Buffer) => {
      received += piece.length;
      if (socket.alpnProtocol !== 'h2') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    received: () => received,
    clientCertificates: () => clientCertificates,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
