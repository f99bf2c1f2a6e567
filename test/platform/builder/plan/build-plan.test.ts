// Manifests as they are read from a source that hostile code has packed.
import { expect, it } from 'vitest';
import { planBuild } from '../../../../src/platform/builder/plan/build-plan.ts';
import { createScratch } from '../../../support/scratch.ts';

const MIB = 1024 ** 2;

async function planOf(files: Readonly<Record<string, string>>) {
  await using scratch = await createScratch();
  for (const [name, text] of Object.entries(files)) await scratch.write(name, text);
  return await planBuild(scratch.path, { directory: '', dependencies: [] }, {});
}

it('the manifests of a source are the inputs of its installation', async () => {
  const files = { 'package.json': '{"name":"a"}', 'package-lock.json': `{${' '.repeat(15 * MIB)}}` };
  const { install } = await planOf(files);
  expect([...(install?.inputs?.keys() ?? [])]).toEqual(Object.keys(files));
});

it.each([
  ['a manifest', { 'package.json': ' '.repeat(MIB + 1) }, 'package.json has more than 1048576 bytes'],
  ['settings', { 'package.json': '{}', '.npmrc': ' '.repeat(MIB + 1) }, '.npmrc has more than 1048576 bytes'],
  ['a lock file', { 'yarn.lock': ' '.repeat(16 * MIB + 1) }, 'yarn.lock has more than 16777216 bytes'],
  [
    'lock files',
    { 'yarn.lock': ' '.repeat(9 * MIB), 'package-lock.json': ' '.repeat(9 * MIB) },
    'yarn.lock, package-lock.json have more than 16777216 characters together',
  ],
])(
  '%s larger than any is refused, because everybody waits for what is done with it',
  async (_, files, reason) => {
    await expect(planOf(files)).rejects.toMatchObject({
      status: 'CREATE_FAILED',
      message: expect.stringContaining(reason),
    });
  },
);
