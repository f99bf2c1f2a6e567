// Which engine is chosen, and that a machine which isolated its boxes never attaches them.
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { createAttachedEngine } from '../../src/box-host/attached-engine.ts';
import type { Capabilities } from '../../src/box-host/bubblewrap/capabilities.ts';
import { chooseEngine, type RuntimeChoice } from '../../src/box-host/engine-choice.ts';
import { createScratch } from '../support/scratch.ts';

const OBSTACLE = 'bwrap is not there: install the Debian package bubblewrap';
const BOX = '8d0a8a0e-6d5e-4f7e-9f0b-3a3f6f1f9a01';

async function choose(
  runtime: RuntimeChoice,
  { before, hasBoxes = before !== undefined }: { before?: string; hasBoxes?: boolean } = {},
) {
  await using scratch = await createScratch();
  if (before !== undefined) await scratch.write('runtime', before);
  const files = join(scratch.path, 'bubblewrap', 'boxes', BOX);
  await mkdir(files, { recursive: true });
  let detections = 0;
  const detect = async (): Promise<Capabilities> => {
    detections += 1;
    return { obstacles: [OBSTACLE] } as unknown as Capabilities;
  };
  const lines: string[] = [];
  const engine = await chooseEngine({
    ...{ runtime, directory: scratch.path, hasBoxes, detect },
    log: createLog('info', { write: (line) => void lines.push(line) }),
    createAttached: () => createAttachedEngine({ host: '127.0.0.1', first: 0, last: 0 }, () => new Set()),
  });
  const opened = engine.open({} as never, {} as never).then(
    ({ statusMessage }) => ['opened', ...(statusMessage === undefined ? [] : [statusMessage])].join(': '),
    ({ kind, message }) => `${kind}: ${message}`,
  );
  const { isolation } = await engine.capabilities();
  const found = { kind: engine.kind, opened: await opened, reason: isolation.reason ?? '', detections };
  await engine.remove(BOX);
  const kept = await readFile(join(scratch.path, 'runtime'), 'utf8');
  return { ...found, kept, hasFiles: existsSync(files), log: lines.join('') };
}

describe('without bubblewrap', () => {
  it('auto attaches boxes, and says why, also to their users', async () => {
    const found = await choose('auto');
    expect(found).toMatchObject({ kind: 'attached', kept: 'attached' });
    expect(found.opened).toMatch(/^opened: This machine cannot isolate sandboxes: /);
    expect(found.opened).toContain(OBSTACLE);
    expect(found.reason).toContain(OBSTACLE);
    expect(found.log).toContain(OBSTACLE);
  });

  it.each(['auto', 'bubblewrap'] as const)(
    '%s attaches no box of a machine that isolated',
    async (runtime) => {
      const found = await choose(runtime, { before: 'bubblewrap' });
      expect(found).toMatchObject({ kind: 'bubblewrap', kept: 'bubblewrap', hasFiles: false });
      expect(found.opened).toMatch(/^failed: .*install the Debian package bubblewrap/);
    },
  );

  it.each(['', 'bubb'])('auto attaches no box where the choice before is damaged: %j', async (before) => {
    expect(await choose('auto', { before })).toMatchObject({ kind: 'bubblewrap', hasFiles: false });
  });

  it('auto decides anew once no box is left', async () => {
    expect(await choose('auto', { before: 'bubblewrap', hasBoxes: false })).toMatchObject({
      kind: 'attached',
    });
  });

  it('bubblewrap starts no box', async () => {
    expect((await choose('bubblewrap')).opened).toContain(OBSTACLE);
  });
});

it.each([
  ['attached', {}],
  ['auto', { before: 'attached' }],
  ['auto', { hasBoxes: true }],
] as const)('%s with %j attaches boxes without trying anything', async (runtime, given) => {
  expect(await choose(runtime, given)).toMatchObject({ kind: 'attached', detections: 0, hasFiles: true });
});

it('boxes that auto attaches because others are attached say so, and those that were asked for say nothing', async () => {
  const found = await choose('auto', { before: 'attached' });
  expect([found.opened, found.reason]).toEqual([
    expect.stringMatching(/^opened: This machine has attached sandboxes/),
    expect.stringContaining('isolation is tried once all of them are deleted'),
  ]);
  expect((await choose('attached')).opened).toBe('opened');
});
