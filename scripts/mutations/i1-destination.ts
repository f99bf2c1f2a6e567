// Ways to send a credential to a peer that has not proved the name.
import type { Mutation } from './mutation.ts';

export const destination: readonly Mutation[] = [
  {
    invariant: 'I1',
    name: 'one pool for all hosts',
    file: 'src/proxy/upstream-lease.ts',
    text: '${scheme}://${authority.text}',
    replacement: '${scheme}://',
    breaks: 'a connection that proved one name carries the credential of another',
  },
  {
    invariant: 'I1',
    name: 'one pool for both schemes',
    file: 'src/proxy/upstream-lease.ts',
    text: '${scheme}://${authority.text}',
    replacement: '${authority.text}',
    breaks: 'a request judged as https leaves on a connection in clear',
  },
  {
    invariant: 'I1',
    name: 'one pool for all revisions',
    file: 'src/proxy/upstream-lease.ts',
    text: 'return `${revision} `;',
    replacement: "return ' ';",
    breaks: 'what an older document warmed serves a newer one',
  },
  {
    invariant: 'I1',
    name: 'no cleartext check',
    file: 'src/proxy/inject.ts',
    text: "request.scheme === 'http' && !mayInjectCleartext(authority, request.egress)",
    replacement: 'false',
    breaks: 'credentials leave over http://',
  },
  {
    invariant: 'I1',
    name: 'loopback by its spelling alone',
    file: 'src/proxy/address-guard.ts',
    text: 'if (isLoopback && egress.allowLoopback) return true;',
    replacement: 'if (isLoopback) return true;',
    breaks: 'a proxy that others reach sends credentials in clear to its own loopback',
  },
  {
    invariant: 'I1',
    name: 'our own CA vouches for hosts',
    file: 'src/sidecar/sidecar.ts',
    text: 'without: ca, ',
    replacement: '',
    breaks: 'a peer with a leaf of the proxy is taken for the host',
  },
  {
    invariant: 'I1',
    name: 'Host need not agree',
    file: 'src/proxy/request-target.ts',
    text: "if (named.text !== authority.text) return refuse('authority_mismatch', 'Host');",
    replacement: '',
    breaks: 'the host judged is not the host named to the origin',
  },
  {
    invariant: 'I1',
    name: 'SNI need not agree',
    file: 'src/proxy/intercept.ts',
    text: 'serverName === undefined || serverName === tunnel.host',
    replacement: 'serverName === undefined || tunnel.host',
    breaks: 'a handshake for another name is not turned away',
  },
];
