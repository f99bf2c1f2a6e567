// The rows of class F against bare http-proxy-3, to prove which of them can fail. A row that it withstands proves nothing about the
// gateway's own reading, and is listed as such by its absence from bare-breaks.ts.
// @module-tag long
import { expect, it } from 'vitest';
import { playMessage } from '../message/message-driver.ts';
import type { MessageRow } from '../message/message-script.ts';
import { classOf } from '../row.ts';
import { bareBreaks, undecided } from './bare-breaks.ts';
import { type BareLane, createBareLane } from './bare-lane.ts';
import { framingRows } from './gateway-rows.ts';
import { gatewayViolations } from './gateway-verdict.ts';

const LANES = 3;
const playable = framingRows.filter((row) => classOf(row) !== 'F-10' && !undecided.includes(row.id));
const listed = Object.entries(bareBreaks).flatMap(([id, names]) => names.map((name) => `${id} ${name}`));
const expected: ReadonlySet<string> = new Set(listed);
/** What some rows do to it depends on which of its sockets is faster: a row that differs from the list is played again. */
const TRIES = 5;

it('bare http-proxy-3 is broken by the listed rows and no other', { timeout: 180_000 }, async () => {
  const queue = [...playable];
  const lanes = await Promise.all(Array.from({ length: LANES }, () => createBareLane()));
  try {
    const broken = (await Promise.all(lanes.map((lane) => work(lane, queue)))).flat();
    console.log(`bare http-proxy-3: ${broken.length} of ${playable.length} rows break it`);
    expect(broken.toSorted()).toEqual(listed.toSorted());
  } finally {
    for (const lane of lanes) await lane[Symbol.asyncDispose]();
  }
});

async function work(lane: BareLane, queue: MessageRow[]): Promise<readonly string[]> {
  const broken: string[] = [];
  for (let row = queue.shift(); row; row = queue.shift()) {
    let isBroken = await breaks(lane, row);
    for (let tries = 1; isBroken !== expected.has(row.id) && tries < TRIES; tries += 1)
      isBroken = await breaks(lane, row);
    if (isBroken) broken.push(row.id);
  }
  return broken;
}

async function breaks(lane: BareLane, row: MessageRow): Promise<boolean> {
  const seen = await playMessage(lane.target, row.script, row.expect, 'tunnel');
  const hasDied = await lane.settle();
  const found = gatewayViolations(row, seen, lane.target.values('tunnel'));
  return hasDied || found.some(({ kind }) => kind === 'security');
}
