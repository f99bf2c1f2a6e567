// L-05, L-06, L-07, L-08: how a process that holds secrets is started, what the environment would make of it, and what
// it leaves on the disk.
import type { StartRow } from './leak-script.ts';

const options = (id: StartRow['id'], switches: string, named: string): StartRow => ({
  id,
  script: { env: { NODE_OPTIONS: switches } },
  expect: { refused: `NODE_OPTIONS has ${named}, ` },
});
const variable = (id: StartRow['id'], env: Readonly<Record<string, string>>, refused: string): StartRow => ({
  id,
  script: { env },
  expect: { refused },
});
const starts = (id: StartRow['id'], script: StartRow['script'], more: StartRow['expect'] = {}): StartRow => ({
  id,
  script,
  expect: more,
});

const entryRows: readonly StartRow[] = [
  options('L-05 inspector', '--inspect=127.0.0.1:0', '--inspect'),
  options('L-05 inspector-port', '--inspect-port=0', '--inspect-port'),
  options('L-05 heap-snapshot-by-signal', '--heapsnapshot-signal=SIGUSR2', '--heapsnapshot-signal'),
  options(
    'L-05 heap-snapshot-near-the-limit',
    '--heapsnapshot-near-heap-limit=1',
    '--heapsnapshot-near-heap-limit',
  ),
  options('L-05 report-by-signal', '--report-on-signal', '--report-on-signal'),
  options(
    'L-05 report-on-a-crash',
    '--report-uncaught-exception --report-on-fatalerror',
    '--report-uncaught-exception',
  ),
  options('L-05 signal-that-opens-the-inspector', '--no-disable-sigusr1', '--no-disable-sigusr1'),
  variable(
    'L-05 debug-output-of-the-runtime',
    { NODE_DEBUG: 'http,tls,net' },
    'NODE_DEBUG makes the runtime write traffic',
  ),
  starts('L-05 sigusr1', { signal: 'SIGUSR1' }),
  starts('L-05 sighup', { signal: 'SIGHUP' }),
];

const shownRows: readonly StartRow[] = [
  starts('L-06 secret-in-a-variable', { env: { SALLYPORT_SECRET_OTHER: '<SECRET>-other' } }),
  starts('L-06 admin-token-in-a-variable', { env: { SALLYPORT_ADMIN_TOKEN: '<TOKEN>' } }),
  starts('L-06 state-key-in-a-variable', { env: { SALLYPORT_STATE_KEY: '<KEY>' } }),
  starts('L-06 all-of-them', {
    env: {
      SALLYPORT_ADMIN_TOKEN: '<TOKEN>',
      SALLYPORT_STATE_KEY: '<KEY>',
      SALLYPORT_SECRET_A: '<SECRET>',
      SALLYPORT_SECRET_B: '<TOKEN>',
    },
  }),
  starts('L-06 with-a-log-of-everything', {
    env: { SALLYPORT_LOG_LEVEL: 'trace', SALLYPORT_ADMIN_TOKEN: '<TOKEN>' },
  }),
  variable('L-06 name-that-is-none', { 'SALLYPORT_SECRET_NO-NAME': '<SECRET>' }, 'SALLYPORT_SECRET_NO-NAME'),
  variable(
    'L-06 admin-token-with-a-blank',
    { SALLYPORT_ADMIN_TOKEN: '<TOKEN> <TOKEN>' },
    'SALLYPORT_ADMIN_TOKEN: the admin token must be one line',
  ),
  variable(
    'L-06 state-key-that-is-none',
    { SALLYPORT_STATE_KEY: '<SECRET>' },
    'SALLYPORT_STATE_KEY: must be 32 random bytes',
  ),
  variable(
    'L-06 token-in-the-place-of-a-file',
    { SALLYPORT_LOG_LEVEL: '<TOKEN>' },
    'SALLYPORT_LOG_LEVEL: Input must be',
  ),
];

const steeringRows: readonly StartRow[] = [
  options('L-07 require', '--require fs', '--require'),
  options('L-07 require-in-quotes', '"--require" "fs"', '--require'),
  options('L-07 import', '--import data:text/javascript,0', '--import'),
  options(
    'L-07 import-behind-what-may-stay',
    '--max-old-space-size=256 --import=data:text/javascript,0',
    '--import',
  ),
  options('L-07 openssl-configuration', '--openssl-config=/dev/null', '--openssl-config'),
  options('L-07 old-tls', '--tls-min-v1.0', '--tls-min-v1.0'),
  options('L-07 lenient-parser', '--insecure-http-parser', '--insecure-http-parser'),
  options('L-07 other-roots', '--use-openssl-ca', '--use-openssl-ca'),
  options('L-07 proxy-of-the-runtime', '--use-env-proxy', '--use-env-proxy'),
  variable(
    'L-07 trust-of-anybody',
    { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
    'NODE_TLS_REJECT_UNAUTHORIZED=0 would accept any certificate',
  ),
  starts('L-07 sizes-and-warnings-may-stay', {
    env: { NODE_OPTIONS: '--max-old-space-size=256 --no-warnings' },
  }),
  starts(
    'L-07 extra-roots-have-no-effect',
    { env: { NODE_EXTRA_CA_CERTS: '/dev/null' } },
    { warns: 'NODE_EXTRA_CA_CERTS has no effect on the proxy itself' },
  ),
  starts(
    'L-07 a-proxy-has-no-effect',
    { env: { HTTPS_PROXY: 'http://127.0.0.1:1' } },
    { warns: 'HTTPS_PROXY has no effect on the proxy itself' },
  ),
];

const opened = (file: string, mode: number): StartRow => ({
  id: `L-08 ${file}-of-mode-${mode.toString(8)}`,
  script: { beforehand: { file, mode } },
  expect: { refused: `${file}: mode 0${mode.toString(8)} gives other users access to the key` },
});
const PRIVATE = { secret: '700', 'secret/ca.key': '600', 'secret/admin-token': '600' } as const;
const PUBLIC = { public: '755', 'public/ca.pem': '644' } as const;
const fileRows: readonly StartRow[] = [
  starts('L-08 files-of-a-first-start', {}, { modes: { ...PRIVATE, ...PUBLIC } }),
  starts('L-08 under-a-mask-that-hides-nothing', { umask: '000' }, { modes: { ...PRIVATE, ...PUBLIC } }),
  starts('L-08 under-a-mask-that-hides-everything', { umask: '077' }, { modes: { ...PRIVATE, ...PUBLIC } }),
  starts(
    'L-08 a-directory-of-our-own',
    { umask: '000', env: { SALLYPORT_STATE_DIR: '<STATE>/made' } },
    { modes: { made: '755', 'made/secret': '700', 'made/secret/ca.key': '600' } },
  ),
  starts(
    'L-08 the-socket-of-the-admin-api',
    { umask: '000', env: { SALLYPORT_ADMIN_LISTEN: 'unix:<STATE>/admin.sock' } },
    { modes: { 'admin.sock': '600' } },
  ),
  starts(
    'L-08 files-of-a-second-start',
    { beforehand: { file: 'public/ca.pem', mode: 0o644 } },
    { modes: { ...PRIVATE, 'secret/state.key': '600', 'secret/sandboxes/default.sealed': '600' } },
  ),
  starts(
    'L-08 a-secret-part-that-others-can-list',
    { beforehand: { file: 'secret', mode: 0o777 } },
    { modes: PRIVATE },
  ),
  opened('secret/ca.key', 0o644),
  opened('secret/ca.key', 0o640),
  opened('secret/ca.key', 0o602),
  opened('secret/state.key', 0o604),
  opened('secret/state.key', 0o660),
  opened('secret/admin-token', 0o644),
  {
    id: 'L-08 ca-key-that-is-none',
    script: { beforehand: { file: 'secret/ca.key', text: 'canary' } },
    expect: { refused: 'ca.key' },
  },
  {
    id: 'L-08 state-key-of-another',
    script: { beforehand: { file: 'secret/state.key', text: `${'33'.repeat(32)}\n` } },
    expect: { refused: 'cannot be decrypted' },
  },
  {
    id: 'L-08 state-key-cut-short',
    script: { beforehand: { file: 'secret/state.key', text: '44'.repeat(20) } },
    expect: { refused: 'state.key: does not hold 32 random bytes' },
  },
];

export const startRows: readonly StartRow[] = [...entryRows, ...shownRows, ...steeringRows, ...fileRows];
