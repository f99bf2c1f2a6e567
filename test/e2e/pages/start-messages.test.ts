// "The proxy does not start" in docs/troubleshooting.md: each message is printed by a proxy that is started that way.
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { program, projectRoot, runToEnd } from '../../support/spawned-process.ts';
import { missingLine } from './page-blocks.ts';

type Start = { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> };

const RULE = { match_hosts: ['a.test'], headers: [{ name: 'A', type: 'workspace_secret', value: '{KEY}' }] };
const rules = async (scratch: Scratch, document: unknown = { rules: [RULE] }): Promise<readonly string[]> => [
  '--proxy-config',
  await scratch.write('rules.json', document),
];

/** By the first cell of their rows. */
const STARTS: Readonly<Record<string, (scratch: Scratch, usedPort: number) => Promise<Start> | Start>> = {
  'port in use': (_, port) => ({ args: ['--listen', `127.0.0.1:${port}`] }),
  'port of the admin API in use': (_, port) => ({ args: ['--admin-listen', `127.0.0.1:${port}`] }),
  'a secret is missing': async (scratch) => ({ args: await rules(scratch) }),
  'a secret is empty': async (scratch) => {
    await mkdir(join(scratch.path, 'secrets'));
    await writeFile(join(scratch.path, 'secrets', 'KEY'), '');
    return { args: ['--secrets-dir', join(scratch.path, 'secrets')] };
  },
  'non-loopback address': () => ({ args: ['--listen', '0.0.0.0:0'] }),
  'wrong variable about clients': () => ({ env: { SALLYPORT_AUTH_TOKEN: 'a-token-of-enough-length' } }),
  'CA file missing': () => ({ env: { SALLYPORT_UPSTREAM_CA: '/nonexistent/ca.pem' } }),
  'CA file without a certificate': async (scratch) => ({
    env: { SALLYPORT_UPSTREAM_CA: await scratch.write('junk.pem', 'junk') },
  }),
  'key of the CA readable by others': async (scratch) => {
    await mkdir(join(scratch.path, 'state', 'secret'), { recursive: true });
    const key = join(scratch.path, 'state', 'secret', 'ca.key');
    await writeFile(key, '-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n');
    await chmod(key, 0o644);
    await mkdir(join(scratch.path, 'state', 'public'));
    await writeFile(join(scratch.path, 'state', 'public', 'ca.pem'), '-----BEGIN CERTIFICATE-----\n');
    return {};
  },
  'rules are no JSON': async (scratch) => ({ args: await rules(scratch, '{"rules": [],}') }),
  'unknown key': async (scratch) => ({ args: await rules(scratch, { rulez: [] }) }),
  'a wildcard is too broad': async (scratch) => ({
    args: await rules(scratch, { rules: [{ ...RULE, match_hosts: ['*.com'] }] }),
  }),
  'verification turned off': () => ({ env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } }),
};

/** Not tried here: they need a second proxy, another Node, another file system, or warn only. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'two proxies with one state directory': 'test/sidecar/state/state-store.test.ts',
  'wrong variable': 'test/cli/unknown-variables.test.ts',
  'state directory not writable': 'test/cli/settings.test.ts',
  'a secret in a variable': 'test/bin/sallyport.test.ts',
  '`run` without `--`': 'test/cli/run.test.ts',
};

const page = await readFile(join(projectRoot, 'docs/troubleshooting.md'), 'utf8');
const section = /^## The proxy does not start\n([^]*?)^## /m.exec(page)?.[1] ?? '';
const rows = [...section.matchAll(/^\| (?!symptom)(.+?) \| `(.+?)` \| .*\|$/gm)].map(
  ([, symptom = '', message = '']) => [symptom, message] as const,
);

describe('a proxy that does not start', () => {
  it('is tried for every row', () => {
    const known = [...Object.keys(STARTS), ...Object.keys(ELSEWHERE)];
    expect(rows.map(([symptom]) => symptom).toSorted()).toEqual(known.toSorted());
    expect(Object.values(ELSEWHERE).filter((file) => !existsSync(join(projectRoot, file)))).toEqual([]);
  });

  const tried = rows.filter(([symptom]) => symptom in STARTS);
  it.each(tried)('%s: %s', { tags: ['long'] }, async (symptom, message) => {
    await using scratch = await createScratch();
    const used = createServer();
    await new Promise<void>((listening) => used.listen(0, '127.0.0.1', listening));
    const start = await STARTS[symptom]?.(scratch, (used.address() as AddressInfo).port);
    const { code, stderr } = await runToEnd(process.execPath, [program, 'proxy', ...(start?.args ?? [])], {
      env: {
        SALLYPORT_LISTEN: '127.0.0.1:0',
        SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
        SALLYPORT_STATE_DIR: join(scratch.path, 'state'),
        ...start?.env,
      },
    });
    used.close();
    expect({ code, stderr, missing: missingLine(stderr, [`...${message}...`]) }).toEqual({
      // Another process may end: a supervisor that tries again may succeed.
      ...{ code: symptom.includes('in use') ? 1 : 2, stderr },
      missing: undefined,
    });
  });
});
