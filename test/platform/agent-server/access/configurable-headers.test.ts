// Which fields of a request reach the runs.
import { expect, it } from 'vitest';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { compileHeaders } from '../../../../src/platform/agent-server/access/configurable-headers.ts';

const SENT = {
  'X-Team': 'one',
  'X-Api-Key': 'secret',
  'X-Tenant-Id': 'tenant',
  'X-Service-Key': 'secret',
  'User-Agent': 'test',
  Authorization: 'Bearer secret',
  Cookie: 'a=1',
  'My-Prefix-A': 'a',
  'My-Other': 'b',
  thread_id: 'c',
  'X-My_Name': 'd',
  'X-Sallyport-Gateway-Token': 'secret',
  'X-Sallyport-Caller': 'ada',
};

it.each<readonly [string, readonly string[] | undefined, readonly string[], readonly string[]]>([
  ['without rules', undefined, [], ['x-team', 'user-agent']],
  ['without what is excluded', undefined, ['x-t*'], ['user-agent']],
  ['nothing', undefined, ['*'], []],
  ['what is included alone', ['my-prefix-*'], [], ['my-prefix-a']],
  ['no credentials by a pattern', ['*'], [], ['x-team', 'user-agent', 'my-prefix-a', 'my-other']],
  ['names with underscores that are named', ['thread_id', 'x-my_*'], [], ['thread_id']],
  ['credentials that are named', ['authorization', 'my-o*r'], [], ['authorization', 'my-other']],
  ['no credentials that are excluded too', ['x-api-key'], ['x-api-*'], []],
  ['nothing of the gateway', ['x-sallyport-gateway-token', 'x-sallyport-*'], [], []],
  ['parts in their order', ['*y*pre*x*'], [], ['my-prefix-a']],
  ['no part twice', ['my-other*my-other'], [], []],
  ['nothing of an empty list', [], [], []],
])('%s', (_, includes, excludes, names) => {
  const head = readRequestHead({ rawHeaders: Object.entries(SENT).flat() });
  expect(Object.keys(compileHeaders({ includes, excludes })(head))).toEqual(names);
});
