// In the place of the engine that isolates boxes, on a machine that cannot isolate them now: no box is started, and what is
// stored of them stays until they are removed.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BoxError } from './box-error.ts';
import { boxId } from './box-document.ts';
import type { BoxEngine } from './engine.ts';

/** `directory`: of the box host. */
export function createObstructedEngine(directory: string, obstacles: readonly string[]): BoxEngine {
  const reason = `This machine cannot isolate sandboxes: ${obstacles.join('; ')}`;
  const notHeld = { is_held: false, reason } as const;
  return {
    kind: 'bubblewrap',
    version: undefined,
    snapshots: undefined,
    capabilities: async () => ({ isolation: notHeld, limits: notHeld, storage: notHeld, agent: notHeld }),
    async open() {
      throw new BoxError('failed', reason);
    },
    remove: (id) =>
      rm(join(directory, 'bubblewrap', 'boxes', boxId.parse(id)), { recursive: true, force: true }),
    close: async () => undefined,
  };
}
