// `api.example.com`, `*.example.com`, `192.0.2.7`, `[2001:db8::7]`, each with an optional `:port`.
// The door to picomatch, which compiles the pattern; it only ever meets canonical hosts, because on raw text
// its `*` also matches a line break, a NUL and `user@`. Whether a wildcard is too broad is asked elsewhere.
import { domainToASCII } from 'node:url';
import picomatch from 'picomatch';
import {
  type Authority,
  type AuthorityError,
  type Host,
  parseHost,
  parsePort,
} from '../authority/authority.ts';

/** `text` is canonical; `host` is the host, for a wildcard the part behind `*.`; `port` undefined means every port. */
export type HostPattern = {
  readonly text: string;
  readonly isWildcard: boolean;
  readonly host: string;
  readonly kind: Host['kind'];
  readonly port: number | undefined;
};

/** Reads one pattern; a string is the fault, as a sentence that says how to mend it. */
export function parseHostPattern(text: string): HostPattern | string {
  const grammar = grammarError(text);
  if (grammar !== undefined) return grammar;
  const isWildcard = text.startsWith('*.');
  const { host: written, port: writtenPort } = splitPort(isWildcard ? text.slice(2) : text);
  const host = parseHost(written);
  if (typeof host === 'string') return hostErrorText(host, written);
  if (isWildcard && host.kind !== 'name') return 'A wildcard stands before a name; write an address in full';
  const port = writtenPort === undefined ? undefined : parsePort(writtenPort);
  if (typeof port === 'string') return 'A port should be a number from 1 to 65535 without leading zeros';
  return { text: formatPattern(host, isWildcard, port), isWildcard, host: host.host, kind: host.kind, port };
}

/** Makes the pattern's test: does it match this authority, port included? */
export function compileHostPattern(pattern: HostPattern): (authority: Authority) => boolean {
  const { isWildcard, host, port } = pattern;
  // Compiled when first asked: ten thousand at once hold everybody up, and most are never asked.
  let compiled: RegExp | undefined;
  return (authority) => {
    if (port !== undefined && port !== authority.port) return false;
    compiled ??= picomatch.makeRe(isWildcard ? `*.${host}` : host, GLOB_OPTIONS);
    return compiled.test(authority.host);
  };
}

// One star is the whole grammar, and grammarFault lets nothing else through; the options say it a second time.
const GLOB_OPTIONS: picomatch.PicomatchOptions = {
  dot: true,
  nobrace: true,
  nobracket: true,
  noextglob: true,
  noglobstar: true,
  nonegate: true,
};

function grammarError(text: string): string | undefined {
  return GRAMMAR.find(([slip]) => slip.test(text))?.[1];
}

// The slips of authors, each with its way out; the first that applies is told.
const GRAMMAR: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'A host should not be empty'],
  [/:\/\//, 'A host pattern has no scheme; write the host alone, as in api.example.com'],
  [/[/#\\]/, 'A host pattern has no path; write the path in match_paths'],
  [/[{}()|!?,+]/, 'Braces, lists and negation are not understood; write one entry for each host'],
  [/@/, 'A host pattern has no user name; write the host alone, as in api.example.com'],
  [/^\*+(?::|$)/, 'A pattern for every host is refused; name the hosts, as in *.example.com'],
  [/^\./, 'A suffix is written with a star, as in *.example.com'],
  [/^\*(?!\.)|.\*/, 'A wildcard is one whole label at the start, as in *.example.com'],
  [/^[^[]*:.*:/, 'An IPv6 address should stand in brackets, as in [2001:db8::7]:443'],
];

function formatPattern({ host, kind }: Host, isWildcard: boolean, port: number | undefined): string {
  const written = kind === 'ipv6' ? `[${host}]` : host;
  return `${isWildcard ? '*.' : ''}${written}${port === undefined ? '' : `:${port}`}`;
}

function splitPort(text: string): { host: string; port: string | undefined } {
  const colon = text.indexOf(':', text.startsWith('[') ? text.indexOf(']') + 1 : 0);
  return colon < 0
    ? { host: text, port: undefined }
    : { host: text.slice(0, colon), port: text.slice(colon + 1) };
}

function hostErrorText(error: AuthorityError, written: string): string {
  const ascii = /[^\x00-\x7f]/.test(written) && !/[\x00-\x20]/.test(written) ? domainToASCII(written) : '';
  if (ascii !== '') return `A host is written as it stands on the wire; if ${ascii} is meant, write that`;
  switch (error) {
    case 'ipv4_invalid':
      return 'An IPv4 address should be four decimal numbers without leading zeros, as in 192.0.2.7';
    case 'ipv6_invalid':
      return 'An IPv6 address should stand in brackets, without a zone, as in [2001:db8::7]';
    case 'too_long':
      return 'A host name has at most 253 characters';
    default:
      return 'A host is a name of letters, digits, hyphens and underscores in labels of at most 63 characters, or an address';
  }
}
