// How the number of agent servers follows what is in flight.
import { expect, it } from 'vitest';
import { createScale } from '../../../../src/platform/runner/fleet/scale.ts';

const range = { min: 1, max: 3 };
const MINUTE = 60_000;

it('begins with the smallest number', () => {
  expect(createScale().look([], { min: 2, max: 4 }, 0)).toBe(2);
});

it('one more is there when all have been busy for two looks, up to the largest number', () => {
  const scale = createScale();
  scale.look([0], range, 0);
  expect(scale.look([20], range, 1)).toBe(1);
  expect(scale.look([20], range, 2)).toBe(2);
  // The new one is not ready yet.
  expect(scale.look([40], range, 3)).toBe(2);
  expect(scale.look([40], range, 4)).toBe(2);
  expect([5, 6, 7, 8].map((at) => scale.look([30, 30], range, at))).toEqual([2, 3, 3, 3]);
});

it('one that has capacity is enough', () => {
  const scale = createScale();
  scale.look([20], range, 0);
  scale.look([20], range, 1);
  expect([2, 3, 4].map((at) => scale.look([20, 3], range, at))).toEqual([2, 2, 2]);
});

it('one fewer is there after five idle minutes, and never fewer than the smallest number', () => {
  const scale = createScale();
  for (const at of [0, 1, 2]) scale.look([20], range, at);
  expect(scale.look([0, 0], range, MINUTE)).toBe(2);
  expect(scale.look([15, 15], range, 2 * MINUTE)).toBe(2);
  expect(scale.look([1, 0], range, 3 * MINUTE)).toBe(2);
  expect(scale.look([1, 0], range, 7 * MINUTE)).toBe(2);
  expect(scale.look([1, 0], range, 8 * MINUTE)).toBe(1);
  expect(scale.look([0], range, 60 * MINUTE)).toBe(1);
});

it('follows a range that is changed', () => {
  const scale = createScale();
  scale.look([0], range, 0);
  expect(scale.look([0], { min: 2, max: 2 }, 1)).toBe(2);
  expect(scale.look([0, 0], { min: 1, max: 1 }, 2)).toBe(1);
});
