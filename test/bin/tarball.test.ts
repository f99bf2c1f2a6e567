// I5 for what is published: a package made in a checkout where everything secret lies about holds none of it, in no form.
// @module-tag long
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cp, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findLeaks } from '../e2e/canary-search.ts';
import { createCanaryValues, keyCanaries, toCanaries } from '../e2e/canary-values.ts';
import { createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

it('the tarball contains the program and its documents, and nothing else', async () => {
  await using scratch = await createScratch();
  const checkout = join(scratch.path, 'checkout');
  await mkdir(checkout);
  for (const part of [
    'bin',
    'config',
    'deploy',
    'certs/README.md',
    'package.json',
    'README.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'LICENSE',
  ])
    await cp(join(projectRoot, part), join(checkout, part), { recursive: true });

  // What a start, a test and a crash leave in a checkout.
  const values = createCanaryValues();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const text = JSON.stringify(values);
  for (const [at, content] of [
    ['certs/ca.key', key],
    ['certs/secret/ca.key', key],
    ['certs/admin.token', values.adminToken],
    ['certs/state.key', values.stateKey.toString('base64')],
    ['certs/sandboxes/default.sealed', text],
    ['.env', `SALLYPORT_SECRET_A=${values.opaque}`],
    ['proxy_config.json', text],
    ['records.jsonl', text],
    ['core', text],
    ['test/fixtures.json', text],
  ] as const) {
    await mkdir(join(checkout, at, '..'), { recursive: true });
    await scratch.write(join('checkout', at), content);
  }
  const env = { SALLYPORT_SECRET_B: values.variableSecret, npm_config_cache: join(scratch.path, 'cache') };
  const build = join(projectRoot, 'scripts', 'build.ts');
  const built = await runToEnd(process.execPath, [build, join(checkout, 'dist')], { env });
  expect(built, built.stderr).toMatchObject({ code: 0 });
  const packed = await runToEnd('npm', ['pack', '--offline', '--pack-destination', scratch.path], {
    cwd: checkout,
    env,
  });
  expect(packed.code, packed.stderr).toBe(0);

  const [tarball = ''] = (await readdir(scratch.path)).filter((name) => name.endsWith('.tgz'));
  const listed = spawnSync('tar', ['-tzf', join(scratch.path, tarball)], { encoding: 'utf8' }).stdout;
  const top = new Set(
    listed
      .trim()
      .split('\n')
      .map((path) => path.split('/').slice(1, 2).join('/')),
  );
  expect([...top].toSorted()).toEqual(
    [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'bin',
      'certs',
      'config',
      'deploy',
      'dist',
      'package.json',
    ].toSorted(),
  );
  expect(listed.match(/^package\/certs\/.*$/gm)).toEqual(['package/certs/README.md']);
  const bytes = spawnSync('tar', ['-xOzf', join(scratch.path, tarball)], { maxBuffer: 1 << 28 }).stdout;
  expect(bytes.includes('sallyport')).toBe(true);
  // Whole values: what is packed is copied, and errors do not quote it.
  const canaries = [...toCanaries(values), ...keyCanaries(key)].map((canary) => ({
    ...canary,
    isText: false,
  }));
  expect(findLeaks('the tarball', bytes, canaries)).toEqual([]);
  expect(
    findLeaks('a leak', Buffer.concat([bytes, await readFile(join(checkout, '.env'))]), canaries),
  ).toHaveLength(1);
});
