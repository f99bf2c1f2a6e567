// Response times do not reveal whether a foreign resource exists: for every route with an id, the median times for a foreign
// and for an unknown id differ by at most a tenth.
// @module-tag long
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Operation } from './document.ts';
import { slowRoute } from './leaky-routes.ts';
import { createExample, type EveryRoute, openEveryRoute, send } from './scene.ts';
import { idIn, foreignCallersTo, withId } from './foreign-callers.ts';

/** Of each kind. More of them show smaller differences, but take longer: use a thousand after a change of the pipeline. */
const RESPONSES = Number(process.env['EVERY_ROUTE_RESPONSES'] ?? 300);
const WITHIN = 0.1;
/** Noise does not occur three times in a row; a real difference does. */
const ROUNDS = 3;

type Medians = { readonly foreign: number; readonly random: number };

async function measure(scene: EveryRoute, operation: Operation, id: string): Promise<Medians> {
  const { api, a1 } = scene;
  const [caller] = foreignCallersTo(operation, scene);
  const own = await createExample(api, operation, a1);
  const took: { readonly foreign: number[]; readonly random: number[] } = { foreign: [], random: [] };
  const kinds = shuffled(Array.from({ length: RESPONSES }, () => ['foreign', 'random'] as const).flat());
  for (const kind of kinds) {
    const example = kind === 'foreign' ? own : withId(own, id, randomUUID());
    const began = performance.now();
    const { status } = await send(api, example, caller?.as ?? {});
    took[kind].push(performance.now() - began);
    if (status !== 404) throw new Error(`${operation.title} returned ${status}`);
  }
  return { foreign: median(took.foreign), random: median(took.random) };
}

/** The rounds until one showed no difference; undefined when all of them showed one. */
async function compare(scene: EveryRoute, operation: Operation): Promise<readonly Medians[] | undefined> {
  const id = idIn(operation);
  if (id === undefined) return [];
  const rounds: Medians[] = [];
  while (rounds.length < ROUNDS) {
    const medians = await measure(scene, operation, id);
    rounds.push(medians);
    if (Math.abs(medians.foreign / medians.random - 1) <= WITHIN) return rounds;
  }
  return undefined;
}

describe('the response time', () => {
  it('of every route is the same for a foreign and for an unknown id', async () => {
    await using scene = await openEveryRoute();
    const found: unknown[] = [];
    let compared = 0;
    for (const operation of scene.operations.filter((one) => idIn(one) !== undefined)) {
      compared += 1;
      if ((await compare(scene, operation)) === undefined) found.push(operation.title);
    }
    expect(found).toEqual([]);
    expect(compared).toBeGreaterThan(10);
  }, 900_000);

  it('that is longer by one query is detected', async () => {
    await using scene = await openEveryRoute({ routes: [slowRoute] });
    const operation = scene.operations.find(({ route }) => route === slowRoute);
    expect(operation).toBeDefined();
    expect(operation && (await compare(scene, operation))).toBeUndefined();
  }, 300_000);
});

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function shuffled<T>(values: readonly T[]): readonly T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
