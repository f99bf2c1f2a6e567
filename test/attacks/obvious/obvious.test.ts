// Plays the rows of the stage `message` against the obvious design to prove that they can fail. Prints how many rows break
// it, by class.
// @module-tag long
import { expect, it } from 'vitest';
import { playMessage } from '../message/message-driver.ts';
import { messageRows } from '../message/message-rows.ts';
import type { MessageRow } from '../message/message-script.ts';
import { classOf } from '../row.ts';
import { type Breakage, breakages } from './breakage.ts';
import { type ObviousLane, createObviousLane } from './obvious-target.ts';

const MIN_BROKEN = 200;
const LANES = 4;

type Broken = { readonly id: string; readonly how: readonly Breakage[] };

/**
 * Without rows that need a callback, which the obvious design does not have, and without F-10: node:http writes chunks
 * anew, so that no hop after it can disagree where its parser is more lenient.
 */
const playable = messageRows.filter(
  (row) => row.script.policy !== 'callback_after_rule' && classOf(row) !== 'F-10',
);

it(`at least ${MIN_BROKEN} rows break the security of the obvious design`, {
  timeout: 180_000,
}, async () => {
  const queue = [...playable];
  const lanes = await Promise.all(Array.from({ length: LANES }, () => createObviousLane()));
  try {
    const broken = (await Promise.all(lanes.map((lane) => work(lane, queue)))).flat();
    console.log(summary(broken));
    expect(broken.length).toBeGreaterThanOrEqual(MIN_BROKEN);
  } finally {
    for (const lane of lanes) await lane[Symbol.asyncDispose]();
  }
});

async function work(lane: ObviousLane, queue: MessageRow[]): Promise<readonly Broken[]> {
  const broken: Broken[] = [];
  for (let row = queue.shift(); row; row = queue.shift()) {
    const how = await breakRow(lane, row);
    if (how.length > 0) broken.push({ id: row.id, how });
  }
  return broken;
}

/** Returns the breakages at the first entry point where there are any. */
async function breakRow(lane: ObviousLane, { script, ...row }: MessageRow): Promise<readonly Breakage[]> {
  for (const entryPoint of script.on.toReversed()) {
    const target = await lane.target(script.policy ?? 'bearer');
    const seen = await playMessage(target, script, row.expect, entryPoint);
    const hasDied = await lane.settle();
    const how = breakages({ ...row, script }, seen, target.values(entryPoint));
    if (hasDied) return [...how, 'the process died'];
    if (how.length > 0) return how;
  }
  return [];
}

function summary(broken: readonly Broken[]): string {
  const tally = (names: readonly string[]): string =>
    [...Map.groupBy(names, (name) => name)]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([name, all]) => `${name} ${all.length}`)
      .join(', ');
  const hows = broken.flatMap(({ how }) => how);
  return [
    `the obvious design: ${broken.length} of ${playable.length} rows break it`,
    tally(broken.map(classOf)),
    tally(hows),
  ].join('\n');
}
