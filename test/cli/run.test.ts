// `sallyport run` as a person meets it: real clients behind it, and what the command sees, says and leaves behind.
import { existsSync, readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentPreload } from '../../src/cli/client/node-preload.ts';
import { type ClientName, isInstalled } from '../interop/client-programs.ts';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, jsonResponse, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { program, runToEnd, SpawnedProcess, type SpawnOptions } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { everyNth } from '../support/run-size.ts';

const SECRET = 'canary-8d2f60b1c7e4';
const nameTable = join(import.meta.dirname, '..', 'support', 'name-table.ts');
const scripts = join(import.meta.dirname, '..', 'interop', 'clients');
const python = process.env['SALLYPORT_TEST_PYTHON'] ?? 'python3';
const origins = createTestAuthority();

let scratch: Scratch;
let origin: RecordingOrigin;
let upstreamCa: string;
let rules: string;

beforeAll(async () => {
  scratch = await createScratch();
  origin = await createOrigin({
    tls: { authority: origins, names: ['api.test', 'api.localhost', 'other.test'] },
    respond: async ({ send, readBody }) => {
      await readBody();
      await send(jsonResponse({ ok: true }));
    },
  });
  upstreamCa = await scratch.write('upstream.pem', origins.certificatePem);
  rules = await scratch.write('rules.json', {
    rules: [
      {
        match_hosts: ['api.test', 'api.localhost'],
        headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
        env_vars: { API_KEY: 'proxy-injected' },
      },
    ],
  });
});

afterAll(async () => {
  await origin.close();
  await scratch[Symbol.asyncDispose]();
});

type RunOptions = SpawnOptions & { readonly flags?: readonly string[] };

function start(command: readonly string[], options: RunOptions = {}): SpawnedProcess {
  const { flags = ['--proxy-config', rules], env, ...rest } = options;
  const args = ['--import', nameTable, program, 'run', ...flags, '--', ...command];
  return new SpawnedProcess(process.execPath, args, {
    ...rest,
    env: { SALLYPORT_UPSTREAM_CA: upstreamCa, SALLYPORT_SECRET_TOKEN: SECRET, ...env },
  });
}

async function finish(
  command: readonly string[],
  options?: RunOptions,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  await using child = start(command, options);
  const { code } = await child.exited;
  return { code, stdout: child.stdout, stderr: child.stderr };
}

const nodeCommand = (script: string): string[] => [process.execPath, '-e', script];
const injectedAtLast = (): readonly string[] =>
  headerValues(origin.requests.at(-1) ?? never(), 'authorization');

function never(): never {
  throw new Error('no request reached the origin');
}

/** As the AWS SDK and stripe do. */
const OWN_AGENT = `
  const https = require('node:https');
  https.get('URL', { agent: new https.Agent({ keepAlive: true }) }, (response) => {
    response.resume().on('end', () => {
      console.log(JSON.stringify({ status: response.statusCode }));
      process.exit();
    });
  });`;

describe('a client behind it gets the credential injected, and only its own output is printed', () => {
  const clients: readonly (readonly [string, ClientName, (url: string) => string[], string])[] = [
    ['curl', 'curl', (url) => ['curl', '-sS', url], 'api.test'],
    ['curl, at a host below localhost', 'curl', (url) => ['curl', '-sS', url], 'api.localhost'],
    [
      'Node’s fetch',
      'node-fetch',
      (url) => [process.execPath, join(scripts, 'with-fetch.js'), url],
      'api.test',
    ],
    [
      'Node’s https',
      'node-https',
      (url) => [process.execPath, join(scripts, 'with-https.js'), url],
      'api.test',
    ],
    [
      'Node’s https with an Agent of a library',
      'node-https',
      (url) => nodeCommand(OWN_AGENT.replace('URL', url)),
      'api.test',
    ],
    ['Python’s urllib', 'python-urllib', (url) => [python, join(scripts, 'with_urllib.py'), url], 'api.test'],
  ];
  for (const [name, client, command, host] of clients) {
    it.runIf(isInstalled(client))(name, async () => {
      const { code, stdout, stderr } = await finish(command(`https://${host}:${origin.port}/v1`));
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(JSON.parse(stdout)).toSatisfy((said) => said.ok === true || said.status === 200);
      expect(injectedAtLast()).toEqual([`Bearer ${SECRET}`]);
    });
  }

  it('also where the proxy requires a token, and no client without it is accepted', async () => {
    const tokenFile = await scratch.write('token', 'proxy-token-0123/4:5@6\n');
    const env = { SALLYPORT_AUTH_TOKEN_FILE: tokenFile };
    const url = `https://api.test:${origin.port}/`;
    expect(await finish(['curl', '-sS', url], { env })).toMatchObject({ code: 0, stderr: '' });
    expect(injectedAtLast()).toEqual([`Bearer ${SECRET}`]);
    const bare = ['sh', '-c', `curl -sS -x "http://\${HTTPS_PROXY#*@}" ${url}`];
    expect((await finish(bare, { env })).stderr).toContain('407');
  });

  it('a host without a rule is trusted as the caller trusted it before', async () => {
    const command = ['curl', '-sS', `https://other.test:${origin.port}/`];
    expect((await finish(command)).code).toBe(60);
    expect(await finish(command, { env: { CURL_CA_BUNDLE: upstreamCa } })).toMatchObject({ code: 0 });
    expect(injectedAtLast()).toEqual([]);
  });
});

describe('the exit code', () => {
  const rows: readonly (readonly [string, readonly string[], number])[] = [
    ['is the command’s', ['sh', '-c', 'exit 7'], 7],
    ['is 0 where the command has no complaint', ['true'], 0],
    ['is 128 and the signal that ended the command', ['sh', '-c', 'kill -TERM $$'], 143],
    ['is 127 for a command that is not there', ['no-such-command'], 127],
    ['is 126 for a file that is no program', [program.replace('sallyport.js', '')], 126],
  ];
  everyNth(2, rows, (some, options) =>
    it.each(some)('%s', options, async (_, command, code) => {
      expect((await finish(command)).code).toBe(code);
    }),
  );
});

describe('a signal', () => {
  const WAITS = `
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'])
      process.on(signal, () => { console.log(signal); process.exit(5); });
    setInterval(() => {}, 60_000);
    console.log(process.env.SSL_CERT_FILE);`;
  everyNth(2, ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const, (some, options) =>
    it.each(some)('%s is forwarded, and the command’s exit code is returned', options, async (signal) => {
      await using child = start(nodeCommand(WAITS));
      const bundle = (await child.output((text) => text.includes('\n'))).trim();
      child.kill(signal);
      expect(await child.exited).toEqual({ code: 5, signal: null });
      expect(child.stdout).toBe(`${bundle}\n${signal}\n`);
      expect(existsSync(dirname(bundle))).toBe(false);
    }),
  );

  it('that ends the command also ends the proxy', async () => {
    await using child = start(nodeCommand('setInterval(() => {}, 60_000); console.log("ready")'));
    await child.output((text) => text.includes('ready'));
    child.kill('SIGTERM');
    expect(await child.exited).toEqual({ code: 143, signal: null });
  });
});

describe('the command', () => {
  it('finds no secret and no setting of the proxy in any view of its process', async () => {
    const secretFile = await scratch.write('one-secret', SECRET);
    const show = `
      const { readFileSync, existsSync } = require('node:fs');
      const shown = ['self', process.ppid].flatMap((pid) => ['environ', 'cmdline'].map((name) => \`/proc/\${pid}/\${name}\`));
      const system = shown.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'latin1'));
      console.log(JSON.stringify({ env: process.env, system }));`;
    const { code, stdout } = await finish(nodeCommand(show), {
      env: {
        SALLYPORT_SECRET_OTHER_FILE: secretFile,
        SALLYPORT_AUTH_TOKEN_FILE: await scratch.write('token', '0123456789abcdef'),
        API_KEY: 'the-real-key-of-the-caller',
      },
    });
    expect(code).toBe(0);
    expect(stdout).not.toContain(SECRET);
    const { env } = JSON.parse(stdout);
    expect(Object.keys(env).filter((name) => /^SALLYPORT_|^UV_/.test(name))).toEqual([]);
    expect(env).toMatchObject({ API_KEY: 'proxy-injected', NODE_USE_ENV_PROXY: '1' });
    expect(env.HTTPS_PROXY).toMatch(/^http:\/\/sallyport:0123456789abcdef@127\.0\.0\.1:\d+$/);
  });

  it('keeps the caller’s thread pool size, and its own arguments and input', async () => {
    const show = 'echo "$UV_THREADPOOL_SIZE $*"; cat';
    const { stdout } = await finish(['sh', '-c', show, 'sh', '--secrets-fd', '9', '--', '--config'], {
      env: { UV_THREADPOOL_SIZE: '7' },
      input: 'typed',
    });
    expect(stdout).toBe('7 --secrets-fd 9 -- --config\ntyped');
  });

  it('gets files that its helpers under other users can read, and that are removed at the end', async () => {
    const show = `
      const { readdirSync, statSync } = require('node:fs');
      const { dirname, join } = require('node:path');
      const directory = dirname(process.env.SSL_CERT_FILE);
      const modes = readdirSync(directory).map((name) => statSync(join(directory, name)).mode & 0o055);
      console.log(JSON.stringify({ directory, modes: [statSync(directory).mode & 0o777, ...modes] }));`;
    const { directory, modes } = JSON.parse((await finish(nodeCommand(show))).stdout);
    const [ofDirectory, ...ofFiles] = modes;
    expect([ofDirectory, existsSync(directory)]).toEqual([0o755, false]);
    expect(ofFiles.length).toBeGreaterThan(5);
    expect(ofFiles.filter((mode: number) => (mode & 0o044) !== 0o044)).toEqual([]);
  });

  it('gets no variable of a program that --without names, and runs with its own options of Node', async () => {
    const show = 'echo "$JAVA_TOOL_OPTIONS|$NODE_OPTIONS|$npm_config_cafile"';
    const flags = ['--proxy-config', rules, '--without', 'java,npm'];
    const env = { NODE_OPTIONS: '--max-old-space-size=99' };
    const { stdout } = await finish(['sh', '-c', show], { flags, env });
    expect(stdout).toMatch(/^\|--max-old-space-size=99 --require=\S+\/agent-preload-[0-9a-f]{16}\.cjs\|\n$/);
  });

  it('that is an old Node without our preload causes one warning', { tags: ['long'] }, async () => {
    const bin = await createScratch();
    await using _ = bin;
    await chmod(await bin.write('node', '#!/bin/sh\necho v20.1.0\n'), 0o755);
    const env = { PATH: `${bin.path}:${process.env['PATH']}` };
    const warnings = async (flags: readonly string[]): Promise<readonly string[]> => {
      const { code, stdout, stderr } = await finish(['node'], { env, flags });
      expect([code, stdout]).toEqual([0, 'v20.1.0\n']);
      return stderr.split('\n').filter((line) => line.includes('v20.1.0'));
    };
    expect(await warnings([])).toEqual([]);
    expect(await warnings(['--without', 'node'])).toEqual([
      expect.stringMatching(/^sallyport: \S+\/node is v20\.1\.0, .* may .*22\.21/),
    ]);
  });
});

it('starts in a shell that has evaluated `sallyport env`', async () => {
  const preload = await scratch.write('agent-preload-0123456789abcdef.cjs', agentPreload);
  const env = { NODE_OPTIONS: `--require=${preload}` };
  const { code, stdout } = await finish(['sh', '-c', 'echo "$NODE_OPTIONS"'], { env });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^--require=\S+\/sallyport-run-\w+\/agent-preload-[0-9a-f]{16}\.cjs\n$/);
});

describe('the user is warned on standard error', () => {
  const curl = (): string[] => ['curl', '-sS', `https://api.test:${origin.port}/`];

  it('when nothing of the command reached the proxy', async () => {
    const { stderr } = await finish(['true']);
    expect(stderr).toMatch(/^sallyport: no request reached the proxy, [^\n]*\n$/);
    expect((await finish(['true'], { flags: [] })).stderr).toBe('');
  });

  it('that a command cannot be run, and not that it reached nothing', async () => {
    const { code, stderr } = await finish(['no-such-command']);
    expect([code, stderr]).toEqual([127, 'sallyport: no-such-command cannot be run: ENOENT\n']);
  });

  it('of variables that have no effect', async () => {
    const { stderr } = await finish(curl(), { env: { NODE_EXTRA_CA_CERTS: upstreamCa } });
    expect(stderr).toBe(
      'sallyport: NODE_EXTRA_CA_CERTS has no effect on the proxy itself: set SALLYPORT_UPSTREAM_CA to the file instead\n',
    );
  });

  it('of a variable that is named like a secret of the rules, without its value', async () => {
    const { stderr } = await finish(curl(), { env: { TOKEN: 'the-real-value' } });
    expect(stderr).toMatch(/^sallyport: TOKEN of your environment is passed on, [^\n]*\n$/);
    expect(stderr).not.toContain('the-real-value');
  });

  it('also where there is a log file', async () => {
    const flags = ['--proxy-config', rules, '--log', join(scratch.path, 'warnings.jsonl')];
    const { stderr } = await finish(curl(), { flags, env: { NODE_EXTRA_CA_CERTS: upstreamCa } });
    expect(stderr).toMatch(/^sallyport: NODE_EXTRA_CA_CERTS [^\n]*\n$/);
  });
});

describe('records', () => {
  const command = (): string[] => ['curl', '-sS', `https://api.test:${origin.port}/v1`];
  const records = (text: string): unknown[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === 'exchange');
  const injected = expect.objectContaining({ outcome: 'injected', status: 200 });

  it('go to the file that --log names', async () => {
    const file = join(scratch.path, 'records.jsonl');
    const flags = ['--proxy-config', rules, '--log', file];
    const { stdout, stderr } = await finish(command(), { flags });
    expect([stdout, stderr]).toEqual(['{"ok":true}', '']);
    expect(records(readFileSync(file, 'utf8'))).toEqual([injected]);
  });

  it('go to standard error for --log -', async () => {
    const { stdout, stderr } = await finish(command(), { flags: ['--proxy-config', rules, '--log', '-'] });
    expect([stdout, records(stderr)]).toEqual(['{"ok":true}', [injected]]);
  });
});

describe('invalid input', () => {
  const rows: readonly (readonly [string, () => Promise<readonly string[]>, RegExp])[] = [
    ['no command', async () => ['--'], /missing command\. Usage: sallyport run/],
    ['an empty command', async () => ['--', ''], /missing command\. Usage: sallyport run/],
    ['an unknown program', async () => ['--without', 'jvm', '--', 'touch'], /--without: jvm/],
    ['no --', async () => ['touch'], /touch/],
    ['an address, which is not for the caller to choose', async () => ['--listen', ':1', '--'], /--listen/],
    [
      'invalid rules',
      async () => ['--proxy-config', await scratch.write('bad.json', { rules: [{}] }), '--', 'touch'],
      /bad\.json: rules\[0\]\.match_hosts/,
    ],
    [
      'rules with a secret that nobody gave',
      async () => ['--proxy-config', rules, '--', 'touch'],
      /rules\.json: rules\[0\]\.headers\[0\]\.value: .*TOKEN/,
    ],
    [
      'an invalid config',
      async () => ['--config', await scratch.write('bad-config.json', { listne: 1 }), '--', 'touch'],
      /bad-config\.json: .*listne/,
    ],
    [
      'a log that cannot be opened',
      async () => ['--log', join(scratch.path, 'none', 'log'), '--', 'touch'],
      /^sallyport: --log: \S+none\/log cannot be opened \(ENOENT\): name a file/,
    ],
  ];
  everyNth(3, rows, (some, options) =>
    it.each(some)('%s: code 2, and the command is not run', options, async (_, args, says) => {
      const marker = join(scratch.path, 'was-run');
      const all = [...(await args())];
      if (all.at(-1) === 'touch') all.push(marker);
      const { code, stdout, stderr } = await runToEnd(process.execPath, [program, 'run', ...all]);
      expect([code, stdout, existsSync(marker)]).toEqual([2, '', false]);
      expect(stderr).toMatch(says);
    }),
  );

  it('a directory for temporary files that does not exist: code 2, and it is named with its variable', async () => {
    const TMPDIR = join(scratch.path, 'none');
    const { code, stderr } = await runToEnd(process.execPath, [program, 'run', '--', 'true'], {
      env: { TMPDIR },
    });
    expect([code, stderr]).toEqual([
      2,
      `sallyport: no directory can be created in ${TMPDIR} (ENOENT): set TMPDIR to a directory that you can write to\n`,
    ]);
  });
});
