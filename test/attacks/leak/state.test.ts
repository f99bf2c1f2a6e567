// The stage `leak`, its sealed state.
import { expect, it } from 'vitest';
import { stateRows } from './rows-state.ts';
import { playState } from './state-driver.ts';

it.each(stateRows)('$id', async ({ script, expect: expected }) => {
  expect(await playState(script, expected)).toEqual([]);
});
