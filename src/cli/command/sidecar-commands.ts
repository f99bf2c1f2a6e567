// The declarations of the commands that run a proxy or prepare its clients.
import type { CommandDeclaration, Values } from './declaration.ts';

/** Options that set a key of the config. `variable`: what they take precedence over. */
export const configOptions = {
  config: { type: 'string', value: 'FILE', text: 'config file; `docs/configuration.md` lists its keys' },
  'proxy-config': {
    type: 'string',
    value: 'FILE',
    text: 'rules, callbacks and access_control',
    variable: 'SALLYPORT_PROXY_CONFIG',
  },
  listen: {
    type: 'string',
    value: 'HOST:PORT',
    text: 'address of the proxy',
    variable: 'SALLYPORT_LISTEN',
    fallback: '127.0.0.1:3128',
  },
  'admin-listen': {
    type: 'string',
    value: 'ADDRESS',
    text: 'address of the admin API: HOST:PORT, unix:/PATH or off',
    variable: 'SALLYPORT_ADMIN_LISTEN',
    fallback: '127.0.0.1:3129',
  },
  'state-dir': {
    type: 'string',
    value: 'DIR',
    text: 'CA, admin token and stored rules',
    variable: 'SALLYPORT_STATE_DIR',
    fallback: '~/.local/state/sallyport',
  },
  'secrets-dir': {
    type: 'string',
    value: 'DIR',
    text: 'directory with one secret in each file',
    variable: 'SALLYPORT_SECRETS_DIR',
  },
  'secrets-file': {
    type: 'string',
    value: 'FILE',
    text: 'file of NAME=value lines',
    variable: 'SALLYPORT_SECRETS_FILE',
  },
} as const;

export type ConfigFlags = Values<typeof configOptions>;

const secretsFd = {
  'secrets-fd': { type: 'string', value: 'N', text: 'file descriptor above 2 to read NAME=value lines from' },
} as const;

const without = {
  type: 'string',
  value: 'LIST',
  text: 'programs that get no variables or files of their own, for example java,node',
} as const;

const { config, 'proxy-config': proxyConfig, listen, 'state-dir': stateDir } = configOptions;
const { 'secrets-dir': secretsDir, 'secrets-file': secretsFile } = configOptions;

const EVERY_KEY =
  'Every key of the config file has a variable, for example SALLYPORT_LISTEN for listen. Options take precedence over variables, and variables over the file.';
const INVALID = [
  '2',
  'the command line, the configuration or a file of the operator must be corrected',
] as const;
const FAILED = ['1', 'an error of the machine, or a bug'] as const;

export const proxyCommand = {
  name: 'proxy',
  summary: 'run the proxy and its admin API',
  options: { ...configOptions, ...secretsFd },
  notes: [
    EVERY_KEY,
    'Changed files of rules and secrets, and SIGHUP, reload them; SIGTERM and SIGINT let running exchanges end.',
  ],
  examples: [
    'sallyport proxy --proxy-config rules.json --secrets-dir secrets --state-dir state',
    'SALLYPORT_LISTEN=0.0.0.0:3128 SALLYPORT_AUTH_TOKEN_FILE=token sallyport proxy',
  ],
  exitCodes: [['0', 'ended by SIGTERM or SIGINT'], FAILED, INVALID],
} as const satisfies CommandDeclaration;

export const runCommandDeclaration = {
  name: 'run',
  summary: 'run a command behind a proxy of its own',
  operands: 'CMD ARGS...',
  afterDashes: true,
  options: {
    config,
    'proxy-config': proxyConfig,
    'state-dir': stateDir,
    'secrets-dir': secretsDir,
    'secrets-file': secretsFile,
    ...secretsFd,
    log: { type: 'string', value: 'FILE', text: 'file for the log and the records; - is standard error' },
    without,
  },
  notes: [EVERY_KEY, 'The proxy gets a free port, and its CA exists in memory only.'],
  examples: [
    'sallyport run --proxy-config rules.json --secrets-dir secrets -- npm test',
    'sallyport run --proxy-config rules.json --log - -- curl https://api.example.com/',
  ],
  exitCodes: [
    ['N', 'the exit code of the command, or 128 and the number of the signal that ended it'],
    INVALID,
    ['126', 'the command cannot be run'],
    ['127', 'the command does not exist'],
  ],
} as const satisfies CommandDeclaration;

export const envCommand = {
  name: 'env',
  summary: 'print the variables for clients of a running proxy',
  options: {
    config,
    'proxy-config': proxyConfig,
    listen,
    'state-dir': stateDir,
    proxy: {
      type: 'string',
      value: 'URL',
      text: 'running proxy to read the CA certificate from, in place of the state directory; needs --write',
    },
    sandbox: {
      type: 'string',
      value: 'ID',
      text: 'sandbox that the token selects; the user name of the proxy URL',
    },
    'token-file': { type: 'string', value: 'FILE', text: 'token for the proxy URL' },
    write: {
      type: 'string',
      value: 'DIR',
      text: 'directory to write CA files to; without it env writes nothing',
    },
    format: {
      type: 'string',
      value: 'FORMAT',
      text: 'sh, dotenv, json or docker (docker run --env-file)',
      fallback: 'sh',
    },
    without,
  },
  notes: [EVERY_KEY, 'wget, apt, PHP, Java and a preload for Node need files of their own: give --write.'],
  examples: [
    'eval "$(sallyport env --state-dir state --proxy-config rules.json)"',
    'eval "$(sallyport env --proxy http://127.0.0.1:3128 --write ~/.sallyport)"',
  ],
  exitCodes: [['0', 'printed'], INVALID],
} as const satisfies CommandDeclaration;

export const startCommand = {
  name: 'start',
  summary: 'run the proxy with an example and a local TLS origin, and print commands to try it',
  options: {
    listen,
    'admin-listen': configOptions['admin-listen'],
    'state-dir': {
      ...stateDir,
      fallback: 'certs in a clone, otherwise ~/.local/state/sallyport/start',
    },
    'origin-port': {
      type: 'string',
      value: 'PORT',
      text: 'port of the local origin; 0 is any free port',
      fallback: '9443',
    },
    'callback-port': {
      type: 'string',
      value: 'PORT',
      text: 'port of the local callback endpoint; 0 is any free port',
      fallback: '9444',
    },
  },
  notes: [
    'The origin shows each request that it receives, credentials included, because that is what the example shows.',
  ],
  examples: ['sallyport start', 'sallyport start --listen 127.0.0.1:8128 --origin-port 0 --callback-port 0'],
  exitCodes: [['0', 'ended by SIGTERM or SIGINT'], INVALID],
} as const satisfies CommandDeclaration;

export const demoCommand = {
  name: 'demo',
  summary: 'show an injected credential from start to end, and check what each side saw',
  options: {},
  examples: ['sallyport demo'],
  exitCodes: [['0', 'every check passed'], ['1', 'a check failed'], INVALID],
} as const satisfies CommandDeclaration;
