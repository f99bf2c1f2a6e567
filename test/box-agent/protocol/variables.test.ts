import { expect, it } from 'vitest';
import { toAgentVariables, toCommandVariables } from '../../../src/box-agent/protocol/variables.ts';

const own = { PATH: '/bin', NODE_OPTIONS: '--require /app/x.js', LD_PRELOAD: '/x.so', EMPTY: '' };

it('the variables of a box reach its commands as they are, and nothing of the agent does', () => {
  const environment = toAgentVariables({ ...own, UNSET: undefined });
  expect(toCommandVariables({ ...environment, PWD: '/', HOME: '/root' })).toEqual(own);
});

it('no variable of a box means anything to the agent', () => {
  for (const name of Object.keys(toAgentVariables(own))) expect(name).toMatch(/^BOX_VARIABLE_/);
});
