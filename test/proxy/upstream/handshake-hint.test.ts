import { describe, expect, it } from 'vitest';
import { handshakeHint } from '../../../src/proxy/upstream/handshake-hint.ts';

describe('the hint for a handshake that failed', () => {
  it.each([
    ['CERT_NOT_YET_VALID', /not valid yet: check the clock/],
    ['CERT_HAS_EXPIRED', /has expired: renew it/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /for other names/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /CA of the certificate is not known.*SALLYPORT_UPSTREAM_CA/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /SALLYPORT_UPSTREAM_CA/],
    ['own_authority', /CA of this proxy/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /not with TLS: use http:\/\//],
  ])('of %s is its own', (code, hint) => {
    expect(handshakeHint(code)).toMatch(hint);
  });

  it('of any other cause is that of the catalogue', () => {
    expect([handshakeHint('ECONNREFUSED'), handshakeHint('constructor')]).toEqual([undefined, undefined]);
  });
});
