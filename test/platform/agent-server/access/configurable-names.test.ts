// Names that imitate a user, or objects of the library, do not pass.
import { expect, it } from 'vitest';
import {
  USER_KEYS,
  withoutReserved,
  withoutReservedNames,
} from '../../../../src/platform/agent-server/access/configurable-names.ts';

it('everything passes but the names of users and of the library', () => {
  const faked = Object.fromEntries(USER_KEYS.map((name) => [name, { identity: 'ada' }]));
  const library = { __pregel_checkpointer: {}, __pregel_read: 1 };
  const inherited = { ['__proto__']: { langgraph_auth_user: 'x' } };
  const own = { model: 'm', graph_auth_user_name: 'mine' };
  expect(withoutReserved({ ...faked, ...library, ...inherited, ...own })).toStrictEqual(own);
});

it('a config without configurable is left as it is', () => {
  for (const config of [{}, { configurable: null }, { configurable: ['graph_auth_user'] }, { tags: ['a'] }])
    expect(withoutReservedNames(config)).toBe(config);
  expect(withoutReservedNames({ tags: [], configurable: { graph_auth_user: 1, a: 2 } })).toEqual({
    tags: [],
    configurable: { a: 2 },
  });
});
