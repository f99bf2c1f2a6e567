// What to do about a handshake with an upstream that failed: one hint for each cause, so that four different mistakes do not
// read alike. The hints are fixed sentences; nothing of the certificate is in them.

/** `code`: of OpenSSL or node:tls, or of our own checks. Undefined: the hint of the catalogue. */
export function handshakeHint(code: string): string | undefined {
  return HINTS.get(code);
}

const OTHER_NAME =
  'the certificate is for other names than this host: correct the host in the URL, or the certificate of the upstream';
const UNKNOWN_CA =
  'the CA of the certificate is not known: the operator can add it with upstream.ca_file (SALLYPORT_UPSTREAM_CA)';
const NOT_TLS = 'the upstream responded, but not with TLS: use http://, or correct the port';

const HINTS: ReadonlyMap<string, string> = new Map([
  [
    'CERT_NOT_YET_VALID',
    'the certificate is not valid yet: check the clock of the machine of the proxy, then that of the upstream',
  ],
  [
    'CERT_HAS_EXPIRED',
    'the certificate has expired: renew it at the upstream, or check the clock of the machine of the proxy',
  ],
  ['ERR_TLS_CERT_ALTNAME_INVALID', OTHER_NAME],
  ['name', OTHER_NAME],
  [
    'own_authority',
    'the certificate is of the CA of this proxy: the request was about to return to a proxy like this one',
  ],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_CA],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_CA],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_CA],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_CA],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_CA],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NOT_TLS],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', NOT_TLS],
]);
