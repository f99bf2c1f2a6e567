import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withPreload } from '../../../src/cli/client/node-preload.ts';
import { oldNodeWarning, readsProxyVariables } from '../../../src/cli/process/old-node.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

describe('whether a Node reads the proxy variables', () => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['v18.20.0', false],
    ['v20.20.2', false],
    ['v22.20.9', false],
    ['v22.21.0', true],
    ['v23.11.0', false],
    ['v24.4.1', false],
    ['v24.5.0', true],
    ['v26.10.0', true],
    ['', false],
  ];
  it.each(rows)('%s: %s', (version, reads) => expect(readsProxyVariables(version)).toBe(reads));
});

async function program(scratch: Scratch, name: string, text: string): Promise<string> {
  const file = await scratch.write(name, text);
  await chmod(file, 0o755);
  return file;
}

describe('a command', () => {
  type Row = readonly [what: string, command: string, version: string, isReported: boolean];
  const rows: readonly Row[] = [
    ['that is an old node', 'node', 'v20.1.0', true],
    ['that is a new node', 'node', 'v26.1.0', false],
    ['whose first line asks for node', 'tool', 'v20.1.0', true],
    ['that reads the proxy variables by itself', 'npm', 'v20.1.0', false],
    ['whose first line asks for node by a path', 'direct', 'v20.1.0', true],
    ['that is another program', 'other', 'v20.1.0', false],
    ['that does not exist', 'nothing', 'v20.1.0', false],
  ];
  it.each(rows)('%s', async (_, command, version, isReported) => {
    await using scratch = await createScratch();
    const node = await program(scratch, 'node', `#!/bin/sh\necho ${version}\n`);
    for (const name of ['npm', 'tool'])
      await program(scratch, name, '#!/usr/bin/env -S node --no-warnings\n');
    await program(scratch, 'direct', `#! ${node}\n`);
    await program(scratch, 'other', '#!/bin/sh\n# not for node\n');
    const env = { PATH: `/nonexistent:${scratch.path}` };
    const reported = expect.stringMatching(new RegExp(`^${node} is ${version}, .* may .*22\\.21`));
    expect(await oldNodeWarning(command, env)).toEqual(isReported ? reported : undefined);
    expect(await oldNodeWarning(join(scratch.path, command), env)).toEqual(isReported ? reported : undefined);
  });

  it.each([
    ['v20.1.0', false],
    ['v16.20.2', true],
  ])('that is node %s with our preload is reported: %s', async (version, isReported) => {
    await using scratch = await createScratch();
    await program(scratch, 'node', `#!/bin/sh\necho ${version}\n`);
    const NODE_OPTIONS = withPreload('--no-warnings', '/t/agent-preload-0123456789abcdef.cjs');
    const warning = await oldNodeWarning('node', { PATH: scratch.path, NODE_OPTIONS });
    expect(warning !== undefined).toBe(isReported);
  });

  it('whose node prints nothing causes no warning', async () => {
    await using scratch = await createScratch();
    await program(scratch, 'node', '#!/bin/sh\nexit 3\n');
    expect(await oldNodeWarning('node', { PATH: scratch.path })).toBeUndefined();
  });
});
