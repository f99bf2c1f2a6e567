import { describe, expect, it } from 'vitest';
import { encodeRun, type Part, type Run } from '../../../../src/platform/store/pool/run-message.ts';

const BIND = 'B \\0name\\0';

/** The messages, each as its type and its body, with bytes that are no text as `\0`. */
function messagesOf(run: Partial<Run & Part>): readonly string[] {
  const { hasBegin = false, hasCommit = false, name = 'name', text, values = [] } = run;
  const { parts = [{ name, text, values }] } = run;
  const bytes = encodeRun({ parts, hasBegin, hasCommit });
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readInt32BE(at + 1);
    const body = bytes.toString('utf8', at + 5, at + 1 + length);
    messages.push(`${String.fromCharCode(bytes[at] ?? 0)} ${body.replaceAll('\0', '\\0')}`.trimEnd());
    at += 1 + length;
  }
  return messages;
}

const [EXECUTE, SYNC] = ['E \\0\\0\\0\\0\\0', 'S'];
const ends = (text: string): readonly string[] => [`P \\0${text}\\0\\0\\0`, `B ${'\\0'.repeat(8)}`, EXECUTE];

describe('the messages of a run', () => {
  it('bind and execute a statement that the connection has', () => {
    expect(messagesOf({})).toEqual([`${BIND}${'\\0'.repeat(6)}`, EXECUTE, SYNC]);
  });

  it('close, parse and describe one that it does not have', () => {
    const [close, parse, describes, ...rest] = messagesOf({ text: 'select 1' });
    expect([close, parse, describes]).toEqual(['C Sname\\0', 'P name\\0select 1\\0\\0\\0', 'D Sname\\0']);
    expect(rest).toEqual(messagesOf({}));
  });

  it('have a BEGIN before them and a COMMIT behind them, up to one Sync', () => {
    const [bind, execute, sync] = messagesOf({});
    const all = messagesOf({ hasBegin: true, hasCommit: true });
    expect(all).toEqual([...ends('begin'), bind, execute, ...ends('commit'), sync]);
  });

  it('are those of several statements one after the other, up to one Sync', () => {
    const parts = ['a', 'b'].map((name) => ({ name, text: undefined, values: [] }));
    const bindOf = (name: string): string => `B \\0${name}\\0${'\\0'.repeat(6)}`;
    const all = messagesOf({ parts, hasBegin: true });
    expect(all).toEqual([...ends('begin'), bindOf('a'), EXECUTE, bindOf('b'), EXECUTE, SYNC]);
  });

  it('have each value as text or as bytes, with its length', () => {
    const values = ['ä', 7, true, null, undefined, Uint8Array.of(0x61, 0x62), ''];
    const parts = [{ name: '', text: undefined, values }];
    const bytes = encodeRun({ parts, hasBegin: false, hasCommit: false });
    // Behind type, length and two empty names.
    const parameters = bytes.subarray(7, bytes.readInt32BE(1) + 1).toString('latin1');
    const length = (value: number): string => `\0\0\0${String.fromCharCode(value)}`;
    expect(parameters).toBe(
      [
        ...['\0\x07', '\0\0', '\0\0', '\0\0', '\0\0', '\0\0', '\0\x01', '\0\0'],
        ...['\0\x07', `${length(2)}\xc3\xa4`, `${length(1)}7`, `${length(4)}true`],
        ...['\xff\xff\xff\xff', '\xff\xff\xff\xff', `${length(2)}ab`, length(0)],
        '\0\0',
      ].join(''),
    );
  });
});
