import { describe, expect, it } from 'vitest';
import { parseMessage } from '../../../src/agent-worker/protocol/envelope.ts';
import { ProtocolError } from '../../../src/agent-worker/protocol/frame.ts';
import { MAX_SMALL_FRAME_BYTES } from '../../../src/agent-worker/protocol/messages.ts';

const parse = (text: string): unknown => parseMessage(Buffer.from(text));

const VALID: readonly object[] = [
  { type: 'hello', version: 1 },
  { type: 'hello', version: 1, language: 'javascript', pid: 12 },
  { type: 'call', id: 0, method: 'run.start', params: {} },
  { type: 'call', id: 1, method: 'checkpoint.get', params: {}, of: 0 },
  { type: 'result', id: 0, value: null },
  { type: 'error', id: 0, error: { kind: 'thrown', error: 'Error', message: '' } },
  {
    type: 'error',
    id: 0,
    error: { kind: 'thrown', error: 'E', message: '', status: 401, headers: { a: 'b' } },
  },
  { type: 'error', id: 0, error: { kind: 'cancelled', reason: 'timeout' } },
  { type: 'error', id: 0, error: { kind: 'refused', code: 'not_found', message: 'x' } },
  { type: 'events', id: 0, events: [{ event: 'values', data: '{}' }] },
  { type: 'data', id: 0, base64: '', isLast: true },
  { type: 'credit', id: 0, bytes: 1 },
  { type: 'cancel', id: 0, reason: 'rollback' },
  { type: 'ping', sequence: 0 },
  { type: 'log', level: 'info', message: 'x', more: 1 },
];

describe('a message', () => {
  it.each(VALID)('$type is read', (message) => expect(parse(JSON.stringify(message))).toEqual(message));

  it.each([
    ['no JSON', '{"type":"ping"', 'not JSON'],
    ['a list', '[]', 'not an object'],
    ['null', 'null', 'not an object'],
    ['no type', '{}', 'unknown type'],
    ['an inherited type', '{"type":"constructor"}', 'unknown type'],
    ['a type that is no text', '{"type":["ping"]}', 'unknown type'],
    ['a missing member', '{"type":"ping"}', 'ping with invalid sequence'],
    ['an id below zero', '{"type":"result","id":-1,"value":1}', 'result with invalid id'],
    ['a fraction', '{"type":"credit","id":1,"bytes":0.5}', 'credit with invalid bytes'],
    ['no credit', '{"type":"credit","id":1,"bytes":0}', 'credit with invalid bytes'],
    ['a result without a value', '{"type":"result","id":1}', 'result with invalid value'],
    ['an event without data', '{"type":"events","id":1,"events":[{"event":"a"}]}', 'invalid events'],
    ['parameters that are no object', '{"type":"call","id":1,"method":"a","params":[]}', 'invalid params'],
    ['an unknown reason', '{"type":"cancel","id":1,"reason":"x"}', 'invalid reason'],
    ['an unknown failure', '{"type":"error","id":1,"error":{"kind":"x"}}', 'invalid error'],
    [
      'a status out of range',
      '{"type":"error","id":1,"error":{"kind":"thrown","error":"E","message":"","status":99}}',
      'invalid error',
    ],
    [
      'fields that are no texts',
      '{"type":"error","id":1,"error":{"kind":"thrown","error":"E","message":"","headers":{"a":1}}}',
      'invalid error',
    ],
  ])('with %s breaks the protocol', (_, text, message) => {
    expect(() => parse(text)).toThrow(ProtocolError);
    expect(() => parse(text)).toThrow(message);
  });

  it('is not quoted in the error', () =>
    expect(() => parse('{"type":"cancel","id":1,"reason":"sk-secret"}')).toThrow(
      /^a message cancel with invalid reason$/,
    ));
});

it('a large message is one that may be large, which its first member says', () => {
  const text = 'x'.repeat(MAX_SMALL_FRAME_BYTES);
  const read = (message: object) => parseMessage(Buffer.from(JSON.stringify(message)));
  expect(read({ type: 'result', id: 1, value: text })).toMatchObject({ type: 'result' });
  for (const message of [
    { type: 'log', level: 'info', message: text },
    { id: 1, value: text, type: 'result' },
  ])
    expect(() => read(message)).toThrow('a large frame');
});
