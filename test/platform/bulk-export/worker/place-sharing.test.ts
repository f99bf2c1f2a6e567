// Which attempt gives its place to a workspace that waits.
import { expect, it } from 'vitest';
import {
  choosePreempted,
  type HeldPlace,
} from '../../../../src/platform/bulk-export/worker/place-sharing.ts';

type Named = HeldPlace & { readonly name: string };

const place = (name: string, beganMs: number, interruptions = 0): Named => ({
  ...{ name, workspaceId: name.slice(0, 1), beganMs, interruptions },
});
const chosenOf = (places: readonly Named[], nowMs = 100): string | undefined =>
  choosePreempted(places, { nowMs, holdMs: 60 })?.name;

it('is the newest of the workspace with the most places', () => {
  expect(chosenOf([place('a1', 10), place('a2', 30), place('b1', 40)])).toBe('a2');
});

it('is none that has just begun', () => {
  expect(chosenOf([place('a1', 10), place('a2', 41)])).toBe('a1');
  expect(chosenOf([place('a1', 41), place('a2', 50)])).toBeUndefined();
});

it('is one of another workspace where those with more places have just begun', () => {
  expect(chosenOf([place('a1', 90), place('a2', 95), place('b1', 20)])).toBe('b1');
});

it('has its place twice as long after each time that its run was interrupted', () => {
  const places = [place('a1', 0, 2)];
  expect([chosenOf(places, 239), chosenOf(places, 240)]).toEqual([undefined, 'a1']);
});
