// The columns of files: all of the public API in its order, and the selection of some.
import { expect, it } from 'vitest';
import { chooseColumns, exportFields } from '../../../../src/platform/bulk-export/files/export-columns.ts';

const required = ['id', 'tenant_id', 'session_id', 'trace_id', 'name', 'run_type', 'start_time', 'is_root'];

it('are all without a selection, and the required ones are never null', () => {
  for (const fields of [undefined, []]) {
    const columns = chooseColumns(fields);
    expect(columns.map(({ name }) => name)).toEqual(exportFields);
    const never = columns.filter(({ isOptional }) => !isOptional).map(({ name }) => name);
    expect(never).toEqual([...required, 'dotted_order']);
  }
  expect(new Set(exportFields).size).toBe(29);
});

it('are those that are selected, once each, in the order of a file', () => {
  const chosen = chooseColumns(['tags', 'id', 'total_cost', 'id', 'no_such_column']);
  expect(chosen.map(({ name, type }) => [name, type])).toEqual([
    ['id', 'text'],
    ['tags', 'texts'],
    ['total_cost', 'decimal'],
  ]);
});
