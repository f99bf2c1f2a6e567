// No command prints the value of a secret, a part of it, or its length, in text or as JSON, whether it succeeds or fails.
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { allCommands } from '../../src/cli/command/help.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { program, runToEnd, spawnSallyport } from '../support/spawned-process.ts';

// Lengths that no other number of an output has.
const WORKSPACE = `${'c4n4ry-w'.repeat(863)}x`;
const OPAQUE = `${'c4n4ry-o'.repeat(641)}xyz`;
const TOKEN = `${'c4n4ry-t'.repeat(7)}a`;

/** What no output may contain: a part of a value, or the length of a value or of the header with it. */
const LEAKS: readonly RegExp[] = [
  // A key or name in the wrong place is shown with its first eight characters.
  /c4n4ry-.c4n/,
  /YzRuNHJ5/, // the same as base64
  ...[WORKSPACE.length, OPAQUE.length].flatMap((length) => [
    new RegExp(`\\b(?:${length}|${length + 'Bearer '.length})\\b`),
    new RegExp(length.toLocaleString('en')),
  ]),
];

function leaksIn(output: string): readonly string[] {
  const withoutPid = output.replaceAll(/"pid":\d+/g, '');
  return LEAKS.filter((leak) => leak.test(withoutPid)).map(String);
}

const workspace = { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {KEY}' };
const opaque = { name: 'X-Key', type: 'opaque', value: OPAQUE };
const rule = { match_hosts: ['api.localhost'], headers: [workspace, opaque] };
const invalid = [
  { ...rule, headers: [{ ...workspace, value: `{KEY}${'x'.repeat(2_000)}` }] },
  { ...rule, match_hosts: [`${OPAQUE}/path`], headers: [{ ...opaque, value: `${OPAQUE}\n` }] },
  { ...rule, headers: [{ ...opaque, [OPAQUE]: OPAQUE, type: OPAQUE }] },
  OPAQUE,
];

type Files = Readonly<Record<'rules' | 'tooLong' | 'invalid' | 'broken' | 'secrets' | 'token', string>>;

async function prepare(scratch: Scratch): Promise<Files> {
  const secrets = join(scratch.path, 'secrets');
  await mkdir(secrets, { mode: 0o700 });
  await scratch.write('secrets/KEY', WORKSPACE);
  return {
    rules: await scratch.write('rules.json', { rules: [rule] }),
    tooLong: await scratch.write('too-long.json', { rules: invalid.slice(0, 1) }),
    invalid: await scratch.write('invalid.json', { rules: invalid }),
    broken: await scratch.write('broken.json', `{"rules": [{"headers": '${OPAQUE}'}]}`),
    secrets,
    token: await scratch.write('token', TOKEN),
  };
}

type CommandLines = (files: Files, running: readonly string[]) => readonly (readonly string[])[];

/** The arguments that each command is tried with, or why it is not tried. */
const COMMANDS: Readonly<Record<string, CommandLines | string>> = {
  check: ({ rules, tooLong, invalid: wrong, broken, secrets }) => {
    const args = ['--secrets-dir', secrets, rules, tooLong, wrong, broken];
    return [args, ['--json', ...args], [`--${OPAQUE}`]];
  },
  explain: ({ rules, invalid: wrong }, running) => [
    ['--proxy-config', rules, `https://api.localhost/?key=${OPAQUE}`],
    ['--proxy-config', wrong, 'https://api.localhost/'],
    ['--json', ...running, `https://api.localhost/?key=${OPAQUE}`],
  ],
  doctor: (_, running) => [
    [...running, `https://api.localhost/?key=${OPAQUE}`],
    ['--json', ...running],
  ],
  status: (_, running) => [running, ['--json', ...running]],
  // It ends with the proxy, or at once where a filter is invalid.
  tail: (_, running) => [[...running, '--status', OPAQUE]],
  ca: (_, [flag = '', state = '']) => [['fingerprint', '--json', flag, state]],
  run: ({ rules, tooLong, secrets }) =>
    [rules, tooLong].map((file) => [
      '--proxy-config',
      file,
      '--secrets-dir',
      secrets,
      '--log',
      '-',
      '--',
      'env',
    ]),
  proxy: ({ tooLong, secrets }) => [['--proxy-config', tooLong, '--secrets-dir', secrets]],
  env: 'the proxy URL that it prints has the token, which its caller needs',
  start: 'it takes no secret, and its origin shows the credential of the example',
  demo: 'it takes no secret',
  platform: 'it prints the API key that it creates',
  'agent-server': 'it takes no secret but the password of a database URL and a file of keys',
  deploy: 'test/cli/deploy/deploy.test.ts looks for its key and its secrets in all that it prints',
  runner: 'it takes no secret but the password of a database URL',
  'export-worker':
    'it takes no secret but the password of a database URL; credentials of destinations are sealed there',
  audit: 'it takes no secret but the password of a database URL',
};

it('every command is in the table', () => {
  expect(Object.keys(COMMANDS).toSorted()).toEqual(allCommands.map(({ name }) => name).toSorted());
});

it('no command prints a secret or its length', { tags: ['long'] }, async () => {
  await using scratch = await createScratch();
  const files = await prepare(scratch);
  const args = ['--secrets-dir', files.secrets];
  const env = { SALLYPORT_AUTH_TOKEN_FILE: files.token };
  await using sallyport = await spawnSallyport({ proxyConfig: { rules: [rule] }, args, env });
  const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
  const admin = String(ready['admin']).replace('http://', '');
  const addresses = ['--listen', `127.0.0.1:${sallyport.port}`, '--admin-listen', admin];
  const running = ['--state-dir', dirname(dirname(sallyport.caFile)), ...addresses];
  for (const [name, lines] of Object.entries(COMMANDS)) {
    if (typeof lines === 'string') continue;
    // The command of `run` needs the token of its proxy.
    const own = name === 'run' ? {} : env;
    const finished = lines(files, running).map((line) =>
      runToEnd(process.execPath, [program, name, ...line], { env: own }),
    );
    for (const { stdout, stderr } of await Promise.all(finished)) {
      expect(stdout + stderr).not.toBe('');
      expect(leaksIn(stdout + stderr), `${name}: ${stdout}${stderr}`).toEqual([]);
    }
  }
  sallyport.process.kill('SIGTERM');
  await sallyport.process.exited;
  expect(leaksIn(sallyport.process.stdout + sallyport.process.stderr)).toEqual([]);
});
