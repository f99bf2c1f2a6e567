// Filters against rows in a real database: which metadata each of them lets through, and which of them are refused.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  compileFilter,
  FilterError,
  whereVisible,
} from '../../../../src/platform/agent-server/access/filters.ts';
import '../../../../src/platform/agent-server/threads/thread-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

const ROWS: Readonly<Record<string, unknown>> = {
  empty: {},
  ada: { owner: 'ada' },
  eve: { owner: 'eve' },
  list: { owner: ['ada'] },
  object: { owner: { id: 'ada', team: 1 } },
  number: { owner: 1 },
  text: { owner: '1' },
  yes: { owner: true },
  none: { owner: null },
  nested: { owner: { owner: 'ada' } },
  tags: { owner: 'ada', tags: ['a', 'b', 1, null, { id: 1, more: 2 }, ['x', 'y']] },
  dotted: { 'owner.id': 'ada', owner: { id: 'eve' } },
  quoted: { "owner' or true --": 'ada' },
};

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  const rows = Object.entries(ROWS).map(([name, metadata]) => ({
    metadata: JSON.stringify(metadata),
    error: JSON.stringify(name),
  }));
  await database.store.db.insertInto('agent_threads').values(rows).execute();
});
afterAll(() => database?.[Symbol.asyncDispose]());

async function visible(given: unknown): Promise<readonly string[]> {
  const rows = await database.store.db
    .selectFrom('agent_threads')
    .select('error')
    .where(whereVisible(compileFilter(given)))
    .execute();
  return rows.map(({ error }) => String(error)).toSorted();
}

describe('a filter shows', () => {
  it.each<readonly [string, unknown, readonly string[]]>([
    ['everything without conditions', {}, Object.keys(ROWS)],
    ['equal text', { owner: 'ada' }, ['ada', 'tags']],
    ['the same by $eq', { owner: { $eq: 'ada' } }, ['ada', 'tags']],
    ['a number, and no text of its digits', { owner: 1 }, ['number']],
    ['a text, and no number', { owner: '1' }, ['text']],
    ['a boolean', { owner: true }, ['yes']],
    ['nothing for another boolean', { owner: false }, []],
    ['null, and no absent key', { owner: null }, ['none']],
    ['null by $eq', { owner: { $eq: null } }, ['none']],
    ['0 by $eq as nothing', { owner: { $eq: 0 } }, []],
    ['an empty text as nothing', { owner: '' }, []],
    ['an equal list', { owner: ['ada'] }, ['list']],
    ['no list with more members', { owner: { $eq: [] } }, []],
    ['an equal object', { owner: { team: 1, id: 'ada' } }, ['object']],
    ['no object with more members', { owner: { id: 'ada' } }, []],
    ['nothing for an empty object', { owner: {} }, []],
    ['an object below the key', { owner: { owner: 'ada' } }, ['nested']],
    ['a member of a list', { owner: { $contains: 'ada' } }, ['list']],
    ['a number in a list', { tags: { $contains: 1 } }, ['tags']],
    ['no text in place of a number', { tags: { $contains: '1' } }, []],
    ['null in a list', { tags: { $contains: null } }, ['tags']],
    ['several members', { tags: { $contains: ['b', 'a'] } }, ['tags']],
    ['nothing where one is missing', { tags: { $contains: ['a', 'c'] } }, []],
    ['lists alone for no members', { owner: { $contains: [] } }, ['list']],
    ['a whole object in a list', { tags: { $contains: { more: 2, id: 1 } } }, ['tags']],
    ['no part of an object in a list', { tags: { $contains: { id: 1 } } }, []],
    ['a whole list in a list', { tags: { $contains: [['x', 'y']] } }, ['tags']],
    ['no part of a list in a list', { tags: { $contains: [['x']] } }, []],
    ['no member of an inner list', { tags: { $contains: 'x' } }, []],
    ['what fulfils all conditions', { owner: 'ada', tags: { $contains: 'a' } }, ['tags']],
    ['nothing where one fails', { owner: 'eve', tags: { $contains: 'a' } }, []],
    ['both operators of a key', { owner: { $eq: ['ada'], $contains: 'ada' } }, ['list']],
    ['a key with a dot as one key', { 'owner.id': 'ada' }, ['dotted']],
    ['a key with quotes as a key', { "owner' or true --": 'ada' }, ['quoted']],
    ['no row for a key that objects have', { constructor: 'ada' }, []],
    ['no row for __proto__', JSON.parse('{"__proto__": {"$eq": "ada"}}'), []],
    ['no row for a text of SQL', { owner: "ada' or '1'='1" }, []],
  ])('%s', async (_, given, names) => {
    expect(await visible(given)).toEqual(names.toSorted());
  });
});

describe('a filter is refused', () => {
  it.each<readonly [string, unknown]>([
    ['that is null', null],
    ['that is a text', 'owner'],
    ['that is a list', [{ owner: 'ada' }]],
    ['with an operator on rows', { $or: [{ owner: 'ada' }] }],
    ['with an empty operator', { $: 1 }],
    ['with an unknown operator', { owner: { $ne: 'ada' } }],
    ['with an unknown operator beside a known one', { owner: { $eq: 'ada', $in: [] } }],
    ['with an operator in capitals', { owner: { $EQ: 'ada' } }],
    ['with operators beside names', { owner: { $eq: 'ada', id: 1 } }],
    ['with U+0000 in a value', { owner: 'a\0' }],
    ['with U+0000 in a key', { 'a\0': 1 }],
    ['with half of a surrogate pair', { owner: ['\ud800'] }],
    ['of too many conditions', Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`k${n}`, n]))],
    ['of too many characters', { owner: 'a'.repeat(65_536) }],
  ])('%s', (_, given) => {
    expect(() => compileFilter(given)).toThrow(FilterError);
  });
});

it('names the table of its column where there are several', async () => {
  const rows = await database.store.db
    .selectFrom('agent_threads')
    .innerJoin('agent_threads as other', 'other.thread_id', 'agent_threads.thread_id')
    .select('agent_threads.error')
    .where(whereVisible(compileFilter({ owner: 'eve' }), 'agent_threads.metadata'))
    .execute();
  expect(rows).toEqual([{ error: 'eve' }]);
});
