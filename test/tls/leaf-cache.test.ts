import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import type { LeafSubject } from '../../src/tls/certificate.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  type IssuedLeaf,
} from '../../src/tls/certificate-authority.ts';
import { createLeafCache } from '../../src/tls/leaf-cache.ts';
import { listenTls, shakeHands } from './handshake.ts';
import { offerAnywhere } from '../support/raw-session.ts';

const HOUR_MS = 3_600_000;
const good = { host: 'api.good.test', kind: 'name' } as const;
/** Whole seconds, as in certificates. Clients check the leaves by the clock of the machine. */
const start = Math.floor(Date.now() / 1000) * 1000;

describe('the context of a host', () => {
  it('is the same object while its leaf is in the first half of its life, and another after that', () => {
    const { cache, clock, issued } = setUp();
    const first = cache.contextFor(good);
    clock.now = start + 35 * HOUR_MS;
    expect(cache.contextFor(good)).toBe(first);
    clock.now = start + 36 * HOUR_MS;
    const second = cache.contextFor(good);
    expect(second).not.toBe(first);
    expect(cache.contextFor(good)).toBe(second);
    expect(issued.length).toBe(2);
    expect(cache.size).toBe(1);
  });

  it('never holds a leaf that is not valid, or that is nearly expired, at any hour of thirty days', () => {
    const { cache, clock, issued } = setUp();
    for (let hour = 0; hour < 30 * 24; hour += 1) {
      clock.now = start + hour * HOUR_MS;
      cache.contextFor(good);
      const { chainPem, notAfter } = issued.at(-1) ?? expect.unreachable();
      expect(new X509Certificate(chainPem).validFromDate.getTime()).toBeLessThan(clock.now);
      expect(notAfter.getTime() - clock.now).toBeGreaterThan(35 * HOUR_MS);
    }
  });

  it('is made anew when the clock was set back past the first second of its leaf, not when it jitters', () => {
    const { cache, clock } = setUp();
    const first = cache.contextFor(good);
    clock.now = start - HOUR_MS;
    expect(cache.contextFor(good)).toBe(first);
    clock.now = start - HOUR_MS - 1;
    expect(cache.contextFor(good)).not.toBe(first);
  });

  it('is its own: names, and an address beside a name of the same text, never share one', () => {
    const { cache } = setUp();
    const subjects: LeafSubject[] = [
      good,
      { host: 'b.test', kind: 'name' },
      { host: '192.0.2.1', kind: 'ipv4' },
      { host: '192.0.2.1', kind: 'name' },
    ];
    expect(new Set(subjects.map(cache.contextFor)).size).toBe(4);
  });
});

describe('the cache', () => {
  it('caches 256 hosts and evicts the least recently used one', () => {
    const { cache, issued } = setUp();
    const host = (n: number): LeafSubject => ({ host: `r${n}.good.test`, kind: 'name' });
    const first = cache.contextFor(host(0));
    for (let n = 1; n < 256; n += 1) cache.contextFor(host(n));
    expect(cache.contextFor(host(0))).toBe(first);
    cache.contextFor(host(256));
    expect(cache.size).toBe(256);
    expect(cache.contextFor(host(0))).toBe(first);
    expect(issued.length).toBe(257);
    cache.contextFor(host(1));
    expect(issued.length).toBe(258);
  });

  it('frees what a context holds when its entry left, crowded out or renewed, and not before the turn ends', async () => {
    const { cache, clock } = setUp({ max: 1 });
    const contexts = [cache.contextFor(good), cache.contextFor({ host: 'other.test', kind: 'name' })];
    clock.now += 72 * HOUR_MS;
    contexts.push(cache.contextFor({ host: 'other.test', kind: 'name' }));
    const closed = contexts.map(({ context }) => vi.spyOn(context, 'close'));
    expect(closed.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0]);
    await turn();
    expect(closed.map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'lets a handshake of %s end well whose entry left while it waited for the client',
    async (version) => {
      const { ca, cache } = setUp({ max: 1 });
      await using listener = await listenTls(() => {
        const context = cache.contextFor(good);
        cache.contextFor({ host: 'other.test', kind: 'name' });
        return context;
      });
      const options = {
        servername: good.host,
        ca: ca.certificatePem,
        minVersion: version,
        maxVersion: version,
      };
      const shaken = await shakeHands(listener.port, options);
      expect(shaken.error).toBeUndefined();
      // A session of a context that is no more is no session, and no harm.
      const again = await shakeHands(listener.port, { ...options, session: shaken.session });
      expect(again).toMatchObject({ error: undefined, isResumed: false });
    },
  );
});

/** Until what was put off to the end of this turn has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('a session of %s', (version) => {
  it('is resumed at the same host, and at no other', async () => {
    const { ca, cache } = setUp();
    const options = { ca: ca.certificatePem, minVersion: version, maxVersion: version };
    await using here = await listenTls(() => cache.contextFor(good));
    await using elsewhere = await listenTls(() => cache.contextFor({ host: 'other.test', kind: 'name' }));
    const { session, isResumed, error } = await shakeHands(here.port, { ...options, servername: good.host });
    expect({ error, isResumed }).toEqual({ error: undefined, isResumed: false });
    if (session === undefined) expect.unreachable('no session was offered');

    const again = await shakeHands(here.port, { ...options, session, servername: good.host });
    expect(again).toMatchObject({ error: undefined, isResumed: true });
    const offered = { ...options, ...offerAnywhere(session) };
    const other = await shakeHands(elsewhere.port, { ...offered, servername: 'other.test' });
    expect(other).toMatchObject({ error: undefined, isResumed: false });
  });
});

describe('a client', () => {
  it('cannot renegotiate: a flood of handshakes would cost it one connection', async () => {
    const { ca, cache } = setUp();
    await using listener = await listenTls(() => cache.contextFor(good));
    const options = { servername: good.host, ca: ca.certificatePem, maxVersion: 'TLSv1.2' } as const;
    const socket = connect({ host: '127.0.0.1', port: listener.port, ...options });
    await once(socket, 'data');
    const [error] = await new Promise<(Error | null)[]>((resolve) => {
      socket.on('error', (late) => resolve([late]));
      socket.renegotiate({}, (early) => resolve([early]));
    });
    socket.destroy();
    expect(error).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' });
  });

  it('that trusts another CA does not believe the leaf', async () => {
    const { cache } = setUp();
    await using listener = await listenTls(() => cache.contextFor(good));
    const ca = createCertificateAuthority().certificatePem;
    const { error } = await shakeHands(listener.port, { servername: good.host, ca });
    expect(error).toBe('SELF_SIGNED_CERT_IN_CHAIN');
  });
});

function setUp(options: { max?: number } = {}) {
  const clock = { now: start };
  const issued: IssuedLeaf[] = [];
  const authority = createCertificateAuthority({ now: new Date(start) });
  const ca: CertificateAuthority = {
    ...authority,
    issueLeaf(subject, now) {
      const leaf = authority.issueLeaf(subject, now);
      issued.push(leaf);
      return leaf;
    },
  };
  return { ca, clock, issued, cache: createLeafCache(ca, { ...options, now: () => clock.now }) };
}
