import { duplexPair } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { runs } from '../support/run-size.ts';
import {
  alpn,
  extension,
  helloBody,
  inRecords,
  message,
  readClientHello,
  serverName,
} from './hello-bytes.ts';

type OpensslReading = {
  readonly isAccepted: boolean;
  readonly serverName: string | undefined;
  readonly alpn: readonly string[] | undefined;
};

const { chainPem, keyPem } = createCertificateAuthority().issueLeaf(
  { host: 'good.test', kind: 'name' },
  new Date(),
);
const secureContext = createSecureContext({ cert: chainPem, key: keyPem });

// What TLS 1.2 needs besides: the groups x25519 and P-256, ECDSA with SHA-256, uncompressed points.
const needed = [
  extension(10, Buffer.from('0004001d0017', 'hex')),
  extension(13, Buffer.from('00020403', 'hex')),
  extension(11, Buffer.from('0100', 'hex')),
];
const cipherSuites = Buffer.from('c02b', 'hex');

function hello(...extensions: readonly Buffer[]): Buffer {
  return message(helloBody({ cipherSuites, extensions: Buffer.concat([...extensions, ...needed]) }));
}

describe('OpenSSL, given the same bytes', () => {
  it('accepts a plain hello, and reads it as we do', async () => {
    const bytes = inRecords(hello(serverName('GOOD.test'), alpn('h2', 'http/1.1')));
    expect(await readByOpenssl(bytes)).toEqual({
      isAccepted: true,
      serverName: 'GOOD.test',
      alpn: ['h2', 'http/1.1'],
    });
    expect(readClientHello(bytes)).toEqual({
      kind: 'hello',
      serverName: 'good.test',
      alpn: ['h2', 'http/1.1'],
    });
  });

  it('never goes on with a name or a list of protocols other than those that we read', async () => {
    const name = fc.oneof(
      fc.constantFrom(
        'good.test',
        'GOOD.test.',
        'evil.test',
        'a_b.test',
        '192.0.2.1',
        '*.test',
        'good.test\0x',
        '',
      ),
      fc.string({ maxLength: 20 }),
    );
    const names = fc
      .array(name, { maxLength: 2 })
      .map((all) => (all.length === 0 ? [] : [serverName(...all)]));
    const lists = fc
      .array(fc.constantFrom('h2', 'http/1.1', 'x', ''), { maxLength: 3 })
      .map((all) => [alpn(...all)]);
    const extensions = fc.array(fc.oneof(names, lists), { maxLength: 3 }).map((groups) => groups.flat());
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 2 });
    let accepted = 0;

    const agreement = fc.asyncProperty(
      extensions,
      changes,
      fc.integer({ min: 1, max: 400 }),
      async (all, edits, size) => {
        const handshake = hello(...all);
        for (const [at, value] of edits) handshake[at % handshake.length] = value;
        const bytes = inRecords(handshake, size);
        const theirs = await readByOpenssl(bytes);
        if (!theirs.isAccepted) return;
        accepted += 1;
        const ours = readClientHello(bytes);
        expect(ours.kind).toMatch(/hello|error/);
        if (ours.kind !== 'hello') return; // stricter, as it may be
        expect(ours.serverName).toBe(theirs.serverName?.toLowerCase().replace(/\.$/, ''));
        expect(ours.alpn?.map(asNodeReads)).toEqual(theirs.alpn);
      },
    );
    await fc.assert(agreement, { numRuns: runs(1_000) });
    expect(accepted).toBeGreaterThan(runs(200));
  });
});

/** Node decodes protocol names as ASCII and drops the eighth bit. */
function asNodeReads(protocol: string): string {
  return Buffer.from(protocol, 'latin1').toString('ascii');
}

/** A Node TLS server on a pipe: what OpenSSL reported to it, and whether it sent a ServerHello. */
async function readByOpenssl(bytes: Buffer): Promise<OpensslReading> {
  const [near, far] = duplexPair();
  let name: string | undefined;
  let protocols: readonly string[] | undefined;
  const server = new TLSSocket(near, {
    isServer: true,
    secureContext,
    SNICallback(servername, done) {
      name = servername;
      done(null, secureContext);
    },
    ALPNCallback(offer) {
      protocols = offer.protocols;
      return offer.protocols[0];
    },
  });
  server.on('error', () => far.destroy());
  // No record begins like this: a hello that was not whole ends in an error instead of waiting for ever.
  far.write(Buffer.concat([bytes, Buffer.alloc(20_000, 0xff)]));
  const isAccepted = await new Promise<boolean>((resolve) => {
    far.once('data', (response: Buffer) => resolve(response[0] === 22));
    far.once('close', () => resolve(false));
  });
  server.destroy();
  far.destroy();
  return { isAccepted, serverName: name, alpn: protocols };
}
