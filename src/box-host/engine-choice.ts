// Which engine runs the boxes of this machine. The choice is kept as long as there are boxes: a machine that isolated its boxes
// must not attach them, nor new ones, because something is missing at its next start.
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import type { Capabilities } from './bubblewrap/capabilities.ts';
import type { BoxEngine } from './engine.ts';
import { createObstructedEngine } from './obstructed-engine.ts';

export const runtimes = ['attached', 'bubblewrap', 'auto'] as const;
export type RuntimeChoice = (typeof runtimes)[number];

export type ChoiceOptions = {
  readonly runtime: RuntimeChoice;
  /** Of the box host, locked. */
  readonly directory: string;
  /** Boxes of an earlier start. */
  readonly hasBoxes: boolean;
  readonly log: Log;
  createAttached(): BoxEngine;
  /** What this machine can hold; by default it is tried out. */
  readonly detect?: () => Promise<Capabilities>;
};

/** `auto`: boxes are isolated where this machine can, and attached where it cannot. */
export async function chooseEngine(options: ChoiceOptions): Promise<BoxEngine> {
  const { runtime, directory, hasBoxes, log } = options;
  const file = join(directory, 'runtime');
  const before = hasBoxes ? await readChoice(file) : undefined;
  const wanted = runtime === 'auto' && before !== undefined ? before : runtime;
  const chosen = await createEngine({ ...options, runtime: wanted });
  await writeChoice(file, chosen.kind);
  if (runtime !== 'auto' || before !== 'attached') return chosen;
  log.info('boxes stay attached, because there are attached boxes: without them, isolation is tried');
  return explained(chosen, STAYING);
}

async function createEngine({
  runtime,
  directory,
  log,
  createAttached,
  detect = detectHere,
}: ChoiceOptions): Promise<BoxEngine> {
  if (runtime === 'attached') return createAttached();
  const found = await detect();
  const { obstacles } = found;
  if (obstacles.length === 0) {
    const { createBubblewrapEngine } = await import('./bubblewrap-engine.ts');
    return createBubblewrapEngine({ directory, found, log });
  }
  if (runtime === 'bubblewrap') {
    log.error({ obstacles }, 'boxes cannot be isolated here, so none is started');
    return createObstructedEngine(directory, obstacles);
  }
  log.warn({ obstacles }, 'boxes cannot be isolated here, so they are attached');
  return explained(createAttached(), `This machine cannot isolate sandboxes: ${obstacles.join('; ')}`);
}

const STAYING =
  'This machine has attached sandboxes, so new ones are attached too: isolation is tried once all of them are deleted';

/** Nobody asked for attached boxes: their users and the operator learn why they are not isolated. */
function explained(engine: BoxEngine, reason: string): BoxEngine {
  return {
    ...engine,
    capabilities: async () => ({
      ...(await engine.capabilities()),
      isolation: { is_held: false, reason },
    }),
    open: async (box, surroundings) => ({
      ...(await engine.open(box, surroundings)),
      statusMessage: `${reason}. Somebody else must run this one, with its proxy_url and ca_pem.`,
    }),
  };
}

/** Loaded where boxes are to be isolated. */
async function detectHere(): Promise<Capabilities> {
  const { detectCapabilities } = await import('./bubblewrap/capabilities.ts');
  return detectCapabilities();
}

/**
 * Without the file: a version that had attached boxes alone. One that is damaged may have said that boxes are isolated: then no
 * box is attached.
 */
async function readChoice(file: string): Promise<BoxEngine['kind']> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return 'attached';
    throw error;
  });
  return text.trim() === 'attached' ? 'attached' : 'bubblewrap';
}

/** Whole, before or after: the disk may be full. */
async function writeChoice(file: string, kind: BoxEngine['kind']): Promise<void> {
  await writeFile(`${file}.new`, kind, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
}
