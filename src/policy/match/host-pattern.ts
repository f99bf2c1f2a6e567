// Host patterns: `api.example.com`, `*.example.com`, `192.0.2.7`, `[2001:db8::7]`, each with an optional `:port`.
// The adapter of picomatch, which compiles the pattern and matches every wildcard. It gets canonical hosts only, because in
// other text its `*` also matches a line break, a NUL and `user@`. proxy-config-conflicts.ts rejects wildcards
// that are too broad.
import { domainToASCII } from 'node:url';
import picomatch from 'picomatch';
import {
  type Authority,
  type AuthorityErrorCode,
  formatAuthority,
  type Host,
  parseHost,
  parsePort,
} from '../authority/authority.ts';

/** `text` is canonical; `host` is the host, for a wildcard the part after `*.`; `port` undefined means every port. */
export type HostPattern = {
  readonly text: string;
  readonly isWildcard: boolean;
  readonly host: string;
  readonly kind: Host['kind'];
  readonly port: number | undefined;
};

/** Parses one pattern; a string says what is wrong and how to correct it. */
export function parseHostPattern(text: string): HostPattern | string {
  const grammar = grammarError(text);
  if (grammar !== undefined) return grammar;
  const isWildcard = text.startsWith('*.');
  const { host: written, port: writtenPort } = splitPort(isWildcard ? text.slice(2) : text);
  const host = parseHost(written);
  if (typeof host === 'string') return hostErrorText(host, written);
  if (isWildcard && host.kind !== 'name')
    return 'A wildcard must be followed by a name; write an address in full';
  const port = writtenPort === undefined ? undefined : parsePort(writtenPort);
  if (typeof port === 'string') return 'A port must be a number from 1 to 65535 without leading zeros';
  const canonical = `${isWildcard ? '*.' : ''}${formatAuthority(host, port)}`;
  return { text: canonical, isWildcard, host: host.host, kind: host.kind, port };
}

/** Returns a function that tests whether an authority matches the pattern, port included. */
export function compileHostPattern(pattern: HostPattern): (authority: Authority) => boolean {
  const { isWildcard, host, port } = pattern;
  // Compiled on first use: to compile ten thousand patterns at once would block the event loop, and most are never used.
  let compiled: RegExp | undefined;
  return (authority) => {
    if (port !== undefined && port !== authority.port) return false;
    compiled ??= picomatch.makeRe(isWildcard ? `*.${host}` : host, GLOB_OPTIONS);
    return compiled.test(authority.host);
  };
}

// GRAMMAR accepts one wildcard only: a star as the first label. The options disable all others in picomatch too.
const GLOB_OPTIONS: picomatch.PicomatchOptions = {
  dot: true,
  nobrace: true,
  nobracket: true,
  noextglob: true,
  noglobstar: true,
  nonegate: true,
};

function grammarError(text: string): string | undefined {
  return GRAMMAR.find(([mistake]) => mistake.test(text))?.[1];
}

// Common mistakes, each with its correction. The first one that is found is reported.
const GRAMMAR: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'A host must not be empty'],
  [/:\/\//, 'A host pattern must not have a scheme; write the host alone, as in api.example.com'],
  [/[/#\\]/, 'A host pattern must not have a path; write the path in match_paths'],
  [/\?.*[=&]|\?[^.]*$/, 'A host pattern must not have a query; write the host alone, as in api.example.com'],
  [/[{}()|!?,+]/, 'Braces, lists and negation are not supported; write one entry for each host'],
  [/@/, 'A host pattern must not have a user name; write the host alone, as in api.example.com'],
  [/^\*+(?::|$)/, 'A pattern for every host is not allowed; name the hosts, as in *.example.com'],
  [/^\./, 'Write a suffix with a star, as in *.example.com'],
  [/^\*(?!\.)|.\*/, 'A wildcard must be one whole label at the start, as in *.example.com'],
  [/^[^[]*:.*:/, 'Write an IPv6 address in brackets, as in [2001:db8::7]:443'],
];

function splitPort(text: string): { host: string; port: string | undefined } {
  const colon = text.indexOf(':', text.startsWith('[') ? text.indexOf(']') + 1 : 0);
  return colon < 0
    ? { host: text, port: undefined }
    : { host: text.slice(0, colon), port: text.slice(colon + 1) };
}

function hostErrorText(error: AuthorityErrorCode, written: string): string {
  const ascii = /[^\x00-\x7f]/.test(written) && !/[\x00-\x20]/.test(written) ? domainToASCII(written) : '';
  if (ascii !== '') return `Write the host in its Punycode form: ${ascii}`;
  switch (error) {
    case 'ipv4_invalid':
      return 'An IPv4 address must be four decimal numbers without leading zeros, as in 192.0.2.7';
    case 'ipv6_invalid':
      return 'Write an IPv6 address in brackets and without a zone, as in [2001:db8::7]';
    case 'too_long':
      return 'A host name must have at most 253 characters';
    default:
      return 'A host must be an address, or a name of letters, digits, hyphens and underscores in labels of at most 63 characters';
  }
}
