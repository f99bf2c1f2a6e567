// The texts of common mistakes, word for word: each says what happened, which field or setting, and what to do.
// The texts of refusals are in test/proxy/refusal.test.ts.
import { expect, it } from 'vitest';
import { parseJsonDocument } from '../../src/base/json/json-document.ts';
import { placeOf, syntaxMistake } from '../../src/base/json/json-mistake.ts';
import { type CommandDeclaration, parseCommandLine } from '../../src/cli/command/declaration.ts';
import { checkCommand, explainCommand } from '../../src/cli/command/inspection-commands.ts';
import { envCommand, proxyCommand, runCommandDeclaration } from '../../src/cli/command/sidecar-commands.ts';
import { refuseRuntimeSwitches } from '../../src/cli/process/runtime-switches.ts';
import {
  isKnownVariable,
  refuseUnknownGuards,
  unknownVariableWarnings,
} from '../../src/cli/unknown-variables.ts';
import { parseAskedUrl } from '../../src/sidecar/explanation.ts';
import { headerValueError, parseSecretTemplate } from '../../src/policy/document/header-rules.ts';
import { parseHostPattern } from '../../src/policy/match/host-pattern.ts';
import { type RefusalCode, refusalCatalogue, refuse } from '../../src/proxy/refusal.ts';
import { parseConfig } from '../../src/sidecar/config.ts';
import { handshakeHint } from '../../src/proxy/upstream/handshake-hint.ts';

function thrownBy(work: () => unknown): string {
  try {
    work();
    return 'nothing';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const line = (command: CommandDeclaration, ...args: string[]) =>
  thrownBy(() => parseCommandLine(command, args));
const warned = (env: Record<string, string>) => unknownVariableWarnings(env).join();
const stopped = (env: Record<string, string>) => thrownBy(() => refuseUnknownGuards(env));
const switched = (env: Record<string, string>) => thrownBy(() => refuseRuntimeSwitches(env));
const config = (env: Record<string, string>) => {
  const parsed = parseConfig({}, env);
  return parsed.ok ? 'nothing' : parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join();
};
const host = (text: string) => String(parseHostPattern(text));
const template = (text: string) => String(parseSecretTemplate(text));

function json(text: string): string {
  const reading = parseJsonDocument(text);
  const place = reading.ok ? undefined : placeOf(text, reading.error.position);
  return place === undefined
    ? 'no place'
    : `${place.line}:${place.column} ${syntaxMistake(text, place.position)}`;
}

const SETTING = /\b(?:SALLYPORT_[A-Z_]+|(?:limits|timeouts|egress|log|upstream|callback)\.[a-z_]+)/g;
const handshakeHints = ['CERT_NOT_YET_VALID', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'].flatMap(
  (code) => handshakeHint(code) ?? [],
);

const UNKNOWN_CA =
  'the CA of the certificate is not known: the operator can add it with upstream.ca_file (SALLYPORT_UPSTREAM_CA)';

const rows: readonly (readonly [mistake: string, text: string | undefined, expected: string])[] = [
  [
    'an option misspelt',
    line(proxyCommand, '--lisen', 'x'),
    'unknown option --lisen: did you mean --listen?',
  ],
  [
    'an option of no command',
    line(envCommand, '--verbose'),
    'unknown option --verbose: env has no such option; `sallyport env --help` lists them',
  ],
  [
    'an option without its value',
    line(proxyCommand, '--listen'),
    '--listen needs a value: --listen HOST:PORT',
  ],
  [
    'an option in place of a value',
    line(proxyCommand, '--listen', '--config', 'x'),
    '--listen needs a value, and an option follows it: --listen HOST:PORT, or --listen=HOST:PORT if the value begins with a dash',
  ],
  ['an empty value', line(checkCommand, '--secrets-dir='), '--secrets-dir needs a value: --secrets-dir DIR'],
  ['a value for a switch', line(checkCommand, '--json=yes'), '--json takes no value: write --json alone'],
  [
    'an argument to a command without one',
    line(proxyCommand, 'rules.json'),
    'unexpected argument rules.json: proxy takes options only; `sallyport proxy --help` lists them',
  ],
  [
    'a command without the dashes',
    line(runCommandDeclaration, 'curl', 'https://api.test/'),
    'unexpected argument curl: put -- before the command, as in sallyport run [OPTIONS] -- CMD ARGS...',
  ],
  [
    'an option of another command',
    line(explainCommand, '--secrets-fd', '3'),
    'unknown option --secrets-fd: explain has no such option; `sallyport explain --help` lists them',
  ],
  [
    'a host instead of a URL',
    String(parseAskedUrl('api.test', 'GET')),
    'give an absolute URL that begins with http:// or https://, as in https://api.example.com/v1/models',
  ],
  [
    'a URL of another scheme',
    String(parseAskedUrl('ftp://api.test/', 'GET')),
    'give an absolute URL that begins with http:// or https://, as in https://api.example.com/v1/models',
  ],
  [
    'a token as the value of SALLYPORT_AUTH',
    config({ SALLYPORT_AUTH: 'token' }),
    'SALLYPORT_AUTH: must be "none" or {"token_file": path}; the variable of the path is SALLYPORT_AUTH_TOKEN_FILE',
  ],
  [
    'one variable of a pair',
    config({ SALLYPORT_CA_CERT: 'ca.pem' }),
    'ca.key: Field required: set it, or SALLYPORT_CA_KEY',
  ],

  [
    'a variable misspelt',
    warned({ SALLYPORT_LISTN: 'x' }),
    'SALLYPORT_LISTN is not a setting: did you mean SALLYPORT_LISTEN?',
  ],
  [
    'a variable without its group',
    warned({ SALLYPORT_DRAIN_MS: '1' }),
    'SALLYPORT_DRAIN_MS is not a setting: did you mean SALLYPORT_TIMEOUTS_DRAIN_MS?',
  ],
  [
    'a variable that does not exist',
    warned({ SALLYPORT_VERBOSITY: '1' }),
    'SALLYPORT_VERBOSITY is not a setting: it has no effect',
  ],
  [
    'a token in a variable that nothing reads',
    stopped({ SALLYPORT_AUTH_TOKEN: 'x' }),
    'SALLYPORT_AUTH_TOKEN is not a setting, and names like it decide who may use the proxy: set SALLYPORT_AUTH_TOKEN_FILE instead, or unset it',
  ],
  [
    'clients in a variable that nothing reads',
    stopped({ SALLYPORT_ALLOW_CLIENT: '::1' }),
    'SALLYPORT_ALLOW_CLIENT is not a setting, and names like it decide who may use the proxy: set SALLYPORT_ALLOW_CLIENTS instead, or unset it',
  ],
  [
    'verification turned off',
    switched({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }),
    'NODE_TLS_REJECT_UNAUTHORIZED=0 would accept any certificate: unset it, and set SALLYPORT_UPSTREAM_CA to your CA',
  ],
  [
    'traffic in the debug output',
    switched({ NODE_DEBUG: 'http' }),
    'NODE_DEBUG makes the runtime write traffic to standard error: unset it, and use SALLYPORT_LOG_LEVEL',
  ],
  [
    'foreign code in the process',
    switched({ NODE_OPTIONS: '--require ./x.js' }),
    'NODE_OPTIONS has --require, which could load code into this process, expose its memory or weaken its checks: remove it there (heap sizes and switches for warnings are allowed)',
  ],

  ['JSON: a comma too many', json('{"a": 1,}'), '1:9 remove the comma before the closing bracket'],
  ['JSON: two commas', json('{"a": 1,, "b": 2}'), '1:9 remove one of the commas'],
  [
    'JSON: no comma',
    json('{"a": 1\n "b": 2}'),
    '2:2 a comma is missing before it, or the document ends before it',
  ],
  ['JSON: a comment', json('{\n  // why\n}'), '2:3 JSON has no comments: remove it'],
  ['JSON: single quotes', json("{'a': 1}"), '1:2 write names and strings in double quotes'],
  ['JSON: a bare name', json('{a: 1}'), '1:2 write names in double quotes'],
  [
    'JSON: a bare word',
    json('{"a": yes}'),
    '1:7 write text in double quotes; the only words are true, false and null',
  ],
  ['JSON: YAML', json('rules:\n  - a'), '1:1 begin with { or [: this may be YAML or another format'],
  ['JSON: nothing', json(''), '1:1 the document is empty'],
  ['JSON: cut short', json('{"a": [1'), '1:9 it ends too early: a quote, bracket or brace is not closed'],
  ['JSON: a byte order mark', json('\ufeff{}'), '1:1 it begins with a byte order mark: save it without one'],
  [
    'JSON: a line break in a string',
    json('["a\nb"]'),
    String.raw`1:4 a string must not have a line break or a tab: write \n or \t`,
  ],

  [
    'host: a URL',
    host('https://api.test/x'),
    'A host pattern must not have a scheme; write the host alone, as in api.example.com',
  ],
  [
    'host: a query',
    host('api.test?key=1'),
    'A host pattern must not have a query; write the host alone, as in api.example.com',
  ],
  ['host: a path', host('api.test/v1'), 'A host pattern must not have a path; write the path in match_paths'],
  [
    'host: a user',
    host('me@api.test'),
    'A host pattern must not have a user name; write the host alone, as in api.example.com',
  ],
  [
    'host: every host',
    host('*'),
    'A pattern for every host is not allowed; name the hosts, as in *.example.com',
  ],
  ['host: a suffix', host('.example.com'), 'Write a suffix with a star, as in *.example.com'],
  [
    'host: half a label',
    host('api*.test'),
    'A wildcard must be one whole label at the start, as in *.example.com',
  ],
  [
    'host: a port of zero',
    host('api.test:0'),
    'A port must be a number from 1 to 65535 without leading zeros',
  ],
  [
    'host: half an address',
    host('127.1'),
    'An IPv4 address must be four decimal numbers without leading zeros, as in 192.0.2.7',
  ],
  ['host: not ASCII', host('m\u00fcnchen.de'), 'Write the host in its Punycode form: xn--mnchen-3ya.de'],
  ['host: nothing', host(''), 'A host must not be empty'],

  [
    'template: no name',
    template('Bearer'),
    'A workspace_secret value must name a secret in braces, as in Bearer {API_TOKEN}; for text without a secret use plaintext',
  ],
  [
    'template: no such name',
    template('Bearer {1A}'),
    'A brace must enclose the name of a secret: {NAME}, of letters, digits and underscores, not beginning with a digit',
  ],
  [
    'value: the line end of a file',
    headerValueError('Bearer x\n'),
    'A header value must not contain a line break; remove the one at its end, if any',
  ],
  [
    'value: a space at its end',
    headerValueError('x '),
    'A header value must not begin or end with a space or tab',
  ],
  ['value: nothing', headerValueError(''), 'A header value must not be empty'],

  [
    'certificate: not yet valid',
    handshakeHint('CERT_NOT_YET_VALID'),
    'the certificate is not valid yet: check the clock of the machine of the proxy, then that of the upstream',
  ],
  [
    'certificate: expired',
    handshakeHint('CERT_HAS_EXPIRED'),
    'the certificate has expired: renew it at the upstream, or check the clock of the machine of the proxy',
  ],
  [
    'certificate: other name',
    handshakeHint('ERR_TLS_CERT_ALTNAME_INVALID'),
    'the certificate is for other names than this host: correct the host in the URL, or the certificate of the upstream',
  ],
  ['certificate: unknown CA', handshakeHint('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), UNKNOWN_CA],
  ['certificate: signed by itself', handshakeHint('DEPTH_ZERO_SELF_SIGNED_CERT'), UNKNOWN_CA],
  [
    'certificate: none, because the port speaks no TLS',
    handshakeHint('ERR_SSL_WRONG_VERSION_NUMBER'),
    'the upstream responded, but not with TLS: use http://, or correct the port',
  ],
];

it.each(rows)('%s', (_, text, expected) => {
  expect(text).toBe(expected);
});

it('of a refusal, a hint names settings that exist', () => {
  const hints = refusalCatalogue().flatMap(({ code }) => refuse(code as RefusalCode).hint ?? []);
  const named = [...hints, ...handshakeHints].flatMap((hint) => hint.match(SETTING) ?? []);
  expect(named.length).toBeGreaterThan(10);
  const variables = named.map((name) =>
    name.startsWith('SALLYPORT_') ? name : `SALLYPORT_${name.replace('.', '_').toUpperCase()}`,
  );
  expect(variables.filter((name) => !isKnownVariable(name) && name !== 'SALLYPORT_UPSTREAM_CA_FILE')).toEqual(
    [],
  );
});

it('are at least forty', () => expect(rows.length).toBeGreaterThanOrEqual(40));
