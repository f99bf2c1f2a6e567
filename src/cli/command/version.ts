// The version of the package, for `--version` and the documents of the platform.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from '../../base/schema.ts';
import { packageRoot } from '../package-root.ts';

export async function readVersion(): Promise<string> {
  const file = await readFile(join(packageRoot, 'package.json'), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(file)).version;
}
