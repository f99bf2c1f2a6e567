// The declarations of the commands that look at files or at a running proxy. `ca rotate` alone creates something.
import type { CommandDeclaration } from './declaration.ts';
import { configOptions } from './sidecar-commands.ts';

const { config, 'state-dir': stateDir, 'admin-listen': adminListen, listen } = configOptions;
const { 'proxy-config': proxyConfig } = configOptions;

const json = { type: 'boolean', text: 'print one JSON document' } as const;
const sandbox = {
  type: 'string',
  value: 'ID',
  text: 'sandbox of a running proxy',
  fallback: 'default',
} as const;
const INVALID = ['2', 'the command line or a file must be corrected'] as const;

export const checkCommand = {
  name: 'check',
  summary: 'validate config and proxy_config files',
  operands: 'FILE...',
  options: {
    'secrets-dir': { type: 'string', value: 'DIR', text: 'secrets that the rules use must exist in DIR' },
    json,
  },
  notes: [
    'FILE may be -, which is standard input. A proxy_config may be wrapped as the admin API returns it.',
    'A warning is about what is valid and probably not meant.',
  ],
  examples: [
    'sallyport check config.json rules.json',
    'sallyport check --secrets-dir secrets rules.json',
    'curl -sH "$AUTH" http://127.0.0.1:3129/v1/proxy_config | sallyport check -',
  ],
  exitCodes: [['0', 'every file is valid'], INVALID],
} as const satisfies CommandDeclaration;

export const explainCommand = {
  name: 'explain',
  summary: 'show what the rules decide about one request',
  operands: 'URL',
  options: {
    method: { type: 'string', value: 'METHOD', text: 'method of the request', fallback: 'GET' },
    config,
    'proxy-config': proxyConfig,
    listen,
    'admin-listen': adminListen,
    'state-dir': stateDir,
    sandbox,
    json,
  },
  notes: [
    'With --proxy-config the file is asked, without it the running proxy by its admin API.',
    'Nothing is sent to the URL, and its name is not resolved: what depends on its address is listed as a condition.',
  ],
  examples: [
    'sallyport explain --proxy-config rules.json https://api.example.com/v1/models',
    'sallyport explain --state-dir state --method POST --json https://api.example.com/',
  ],
  exitCodes: [
    ['0', 'the request would be forwarded'],
    ['1', 'the request would be refused, or the proxy cannot be asked'],
    INVALID,
  ],
} as const satisfies CommandDeclaration;

export const caCommand = {
  name: 'ca',
  summary: 'print the CA certificate of the proxy, or create the one that follows it',
  operands: 'show | bundle | fingerprint | rotate',
  options: {
    config,
    'state-dir': stateDir,
    overlap: {
      type: 'string',
      value: 'DAYS',
      text: 'rotate: how long clients have to load the next certificate before it is used',
      fallback: '7',
    },
    json,
  },
  notes: [
    'show: the certificate (PEM). bundle: the certificate and the roots of the system. fingerprint: its SHA-256. No key is read.',
    'rotate: creates the next CA. The proxy hands out both certificates from now on, and signs with the next one after the overlap.',
  ],
  examples: [
    'sallyport ca show --state-dir state > ca.pem',
    'sallyport ca fingerprint --json',
    'sallyport ca rotate --overlap 14',
  ],
  exitCodes: [['0', 'printed or created'], INVALID],
} as const satisfies CommandDeclaration;

export const statusCommand = {
  name: 'status',
  summary: 'show whether a proxy runs, its sandboxes and its CA',
  options: { config, listen, 'admin-listen': adminListen, 'state-dir': stateDir, json },
  examples: ['sallyport status', 'sallyport status --state-dir state --json'],
  exitCodes: [['0', 'the proxy is ready'], ['1', 'it cannot be reached or is not ready'], INVALID],
} as const satisfies CommandDeclaration;

export const tailCommand = {
  name: 'tail',
  summary: 'show the records of a running proxy while they come',
  options: {
    host: {
      type: 'string',
      value: 'GLOB',
      text: 'host, with or without port; * is any number of characters',
    },
    rule: { type: 'string', value: 'NAME', text: 'name of the rule that applied' },
    callback: { type: 'string', value: 'NAME', text: 'name of the callback that applied' },
    outcome: {
      type: 'string',
      value: 'OUTCOME',
      text: 'injected, forwarded, tunnelled, refused, failed, ...',
    },
    status: { type: 'string', value: 'STATUS', text: 'status of the response, as 403, or a class, as 4xx' },
    refused: { type: 'boolean', text: 'only what was refused or failed' },
    sandbox: { type: 'string', value: 'ID', text: 'sandbox of the client' },
    config,
    listen,
    'admin-listen': adminListen,
    'state-dir': stateDir,
    json: { type: 'boolean', text: 'print each record as a line of JSON' },
  },
  notes: [
    'A record must match every filter. It comes when its request, or its tunnel, has ended.',
    'An output that is read slowly loses records and says how many; the proxy never waits.',
  ],
  examples: [
    'sallyport tail --refused',
    "sallyport tail --state-dir state --host '*.example.com' --status 4xx --json",
  ],
  exitCodes: [
    ['0', 'the proxy, or the reader of the output, has ended'],
    ['1', 'the proxy cannot be followed, or the connection was cut'],
    INVALID,
  ],
} as const satisfies CommandDeclaration;

export const doctorCommand = {
  name: 'doctor',
  summary: 'find out why clients of a running proxy fail, and what to do',
  operands: '[URL]',
  options: {
    config,
    'proxy-config': proxyConfig,
    listen,
    'admin-listen': adminListen,
    'state-dir': stateDir,
    json,
  },
  notes: [
    'Checks the proxy, the CA, the clock, and whether curl, Node, Python, git and Java trust the CA in this environment.',
    'With a URL also its name, the rule that matches, and one request through the proxy.',
  ],
  examples: ['sallyport doctor', 'sallyport doctor --state-dir state https://api.example.com/'],
  exitCodes: [['0', 'no check failed'], ['1', 'a check failed; each says what to do'], INVALID],
} as const satisfies CommandDeclaration;
