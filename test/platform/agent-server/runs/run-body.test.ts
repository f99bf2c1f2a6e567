// What clients may send to create a run, and how precisely the rest is refused.
import { expect, it } from 'vitest';
import { parseWith } from '../../../../src/base/schema.ts';
import {
  requireSupported,
  type RunBody,
  runBody,
} from '../../../../src/platform/agent-server/runs/run-body.ts';

it('takes all that clients send, and null for what is absent', () => {
  const body = {
    ...{
      assistant_id: 'agent',
      input: null,
      command: { resume: { a: 1 }, goto: [{ node: 'a', input: 1 }, 'b'] },
    },
    ...{ stream_mode: 'values', interrupt_before: '*', interrupt_after: ['a'], feedback_keys: 'score' },
    ...{ after_seconds: 0.5, config: { tags: ['a'] }, metadata: null, checkpoint: { checkpoint_id: '1' } },
  };
  expect(parseWith(runBody, body)).toMatchObject({
    ok: true,
    value: {
      ...{ stream_mode: ['values'], interrupt_before: '*', interrupt_after: ['a'], feedback_keys: ['score'] },
      metadata: null,
    },
  });
});

it.each([
  [{}, ['assistant_id'], 'missing'],
  [{ stream_mode: 'all' }, ['stream_mode', 0], 'enum'],
  [{ stream_mode: ['values', 'x'] }, ['stream_mode', 1], 'enum'],
  [{ after_seconds: -1 }, ['after_seconds'], 'greater_than_equal'],
  [{ multitask_strategy: 'wait' }, ['multitask_strategy'], 'enum'],
  [{ metadata: { a: { b: '\0' } } }, ['metadata', 'a', 'b'], 'value_error'],
  [{ metadata: [] }, ['metadata'], 'dict_type'],
  [{ command: { goto: 1 } }, ['command', 'goto'], 'value_error'],
  [{ command: { go: 1 } }, ['command', 'go'], 'extra_forbidden'],
  [{ durability: 'always' }, ['durability'], 'enum'],
])('%j is refused at %j', (part, loc, type) => {
  const whole = type === 'missing' ? part : { assistant_id: 'agent', ...part };
  expect(parseWith(runBody, whole)).toMatchObject({ ok: false, issues: [{ loc, type }] });
});

it('says what a later version does', () => {
  const body = { assistant_id: 'agent', webhook: 'https://example.test' } as RunBody;
  expect(() => requireSupported(body)).toThrow(/webhook/);
});
