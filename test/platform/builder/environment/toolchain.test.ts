import { execFile } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { prepareToolchain } from '../../../../src/platform/builder/environment/toolchain.ts';
import { createScratch } from '../../../support/scratch.ts';

const run = promisify(execFile);

/** An npm that prints its arguments, below the directory. */
async function createNpm(root: string): Promise<string> {
  const bin = join(root, 'npm/bin');
  await mkdir(bin, { recursive: true });
  for (const name of ['npm', 'npx'])
    await writeFile(
      join(bin, `${name}-cli.js`),
      `console.log('${name}', process.execPath, ...process.argv.slice(2))`,
    );
  return join(root, 'npm');
}

it('npm of PATH is run by our own Node', async () => {
  await using scratch = await createScratch();
  const npm = await createNpm(join(scratch.path, "it's here"));
  const path = join(scratch.path, 'bin');
  await mkdir(path);
  await symlink(join(npm, 'bin/npm-cli.js'), join(path, 'npm'));
  const options = { node: process.execPath, path: `relative:/nonexistent:${path}` };
  const directory = join(scratch.path, 'tools');
  await prepareToolchain(directory, options);
  const tools = await prepareToolchain(directory, options);
  const { stdout } = await run(join(tools.bin, 'npx'), ['a b', '$HOME'], { env: {} });
  expect(stdout).toBe(`npx ${process.execPath} a b $HOME\n`);
  const { stdout: version } = await run(join(tools.bin, 'node'), ['--version']);
  expect(version.trim()).toBe(process.version);
  expect(tools.npm).toBe(join(npm, 'bin/npm-cli.js'));
  expect(tools.mounts).toEqual(
    expect.arrayContaining([directory, process.execPath, npm].map((source) => ({ source, target: source }))),
  );
});

it('npm beside Node comes first, and its headers are those of native modules', async () => {
  await using scratch = await createScratch();
  const node = join(scratch.path, 'node/bin/node');
  await mkdir(dirname(node), { recursive: true });
  await writeFile(node, '');
  await chmod(node, 0o755);
  const headers = join(scratch.path, 'node/include/node');
  await mkdir(headers, { recursive: true });
  await writeFile(join(headers, 'node.h'), '');
  const npm = await createNpm(join(scratch.path, 'node/lib/node_modules'));
  const tools = await prepareToolchain(join(scratch.path, 'tools'), { node, path: '/usr/bin:/bin' });
  expect(tools.env).toEqual({ npm_package_config_node_gyp_nodedir: join(scratch.path, 'node') });
  expect(tools.mounts).toContainEqual({ source: headers, target: headers });
  expect(tools.npm).toBe(join(npm, 'bin/npm-cli.js'));
});

it('a machine without npm has Node alone', async () => {
  await using scratch = await createScratch();
  const node = join(scratch.path, 'bin/node');
  await mkdir(dirname(node));
  await symlink(process.execPath, node);
  const tools = await prepareToolchain(join(scratch.path, 'tools'), { node, path: scratch.path });
  expect(tools.npm).toBeUndefined();
});
