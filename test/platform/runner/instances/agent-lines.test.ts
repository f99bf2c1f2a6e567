// What an agent server prints, as it is shown in the log of its deployment.
import { expect, it } from 'vitest';
import { parseAgentLine } from '../../../../src/platform/runner/instances/agent-lines.ts';

const line = (entry: object): string =>
  JSON.stringify({ level: 'info', time: '2026-11-24T02:00:02.697Z', pid: 2, ...entry });

it.each([
  ['trace', 'DEBUG'],
  ['debug', 'DEBUG'],
  ['info', 'INFO'],
  ['warn', 'WARNING'],
  ['error', 'ERROR'],
  ['fatal', 'CRITICAL'],
])('level %s is %s', (level, expected) => {
  expect(parseAgentLine('stdout', line({ level, msg: 'x' }))).toEqual({ level: expected, message: 'x' });
});

it('fields follow the message', () => {
  const entry = line({ msg: 'run failed', run_id: '1-2', note: 'two words', error: { type: 'E' } });
  expect(parseAgentLine('stdout', entry).message).toBe(
    'run failed run_id=1-2 note="two words" error={"type":"E"}',
  );
});

it.each([
  ['stdout', 'plain text', 'INFO'],
  ['stderr', 'plain text', 'ERROR'],
  ['stdout', '{"not json', 'INFO'],
  ['stdout', '{"level":"high"}', 'INFO'],
  ['stdout', '[1]', 'INFO'],
] as const)('on %s %s is text', (stream, text, level) => {
  expect(parseAgentLine(stream, text)).toEqual({ level, message: text });
});

it('a line with names of the language is a line', () => {
  expect(parseAgentLine('stdout', '{"level":"info","__proto__":{"msg":"x"}}').message).toBe(
    '__proto__={"msg":"x"}',
  );
});
