// What the processes of a database tell each other about runs.
import { expect, it } from 'vitest';
import {
  formatRunNotice,
  parseRunNotice,
  type RunNotice,
} from '../../../../src/platform/agent-server/streams/run-notices.ts';

const ID = '6f2b9c1e-4a55-4a9e-9a50-0d2f3f0c7b11';

it.each<RunNotice>([
  { kind: 'new', threadId: ID },
  { kind: 'cancel', runId: ID },
  { kind: 'ended', runId: ID },
  { kind: 'watch', runId: ID },
  { kind: 'events', runId: ID },
  { kind: 'updated', threadId: ID, updateId: ID },
])('$kind', (notice) => {
  expect(parseRunNotice(formatRunNotice(notice))).toEqual(notice);
});

it.each([
  ['nothing', ''],
  ['a kind alone', 'new'],
  ['another kind', `paused ${ID}`],
  ['another id', 'ended 1'],
  ['more than an id', `ended ${ID} ${ID}`],
  ['an update without an id', `updated ${ID}`],
  ['an update with another id', `updated ${ID} 1`],
])('ignores %s: a newer version, or anybody, may have sent it', (_, payload) => {
  expect(parseRunNotice(payload)).toBeUndefined();
});
