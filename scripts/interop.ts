// `npm run interop`: installs the public clients of sandboxes by their own locks, and runs them against a platform whose boxes
// bubblewrap isolates. `npm run interop -- install` only installs; what is there already is kept.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isInstalled, pythonFolder } from '../test/interop/sandbox-clients.ts';

const root = join(import.meta.dirname, '..');

function run(command: string, args: readonly string[], cwd: string = root): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

if (!existsSync(join(root, 'interop', 'node_modules', 'langsmith')))
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], join(root, 'interop'));
if (!isInstalled('langsmith-sandbox-python')) {
  await rm(pythonFolder, { recursive: true, force: true });
  run('python3', ['-m', 'venv', pythonFolder]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes'];
  run(join(pythonFolder, 'bin', 'python'), [...pip, '-r', join(root, 'interop', 'requirements.txt')]);
}
if (process.argv[2] !== 'install')
  run(join(root, 'node_modules', '.bin', 'vitest'), ['run', 'test/interop/sandbox-clients.test.ts']);
