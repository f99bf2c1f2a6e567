// Lines past the logger are the lines that the logger would write.
import { describe, expect, it } from 'vitest';
import { createLineWriter, createLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';

function linesOf(write: (sink: { write(line: string): void }) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  write({ write: (line) => void lines.push(line) });
  return lines.map((line) => {
    expect(line.endsWith('}\n')).toBe(true);
    expect(line.indexOf('\n')).toBe(line.length - 1);
    return JSON.parse(line);
  });
}

describe('a line written without the logger', () => {
  const fields = {
    sandbox: 'default',
    path: '/a"b\\c\n\u2028\u0000',
    injected: ['Authorization'],
    status: 200,
    upstream_reused: true,
    omitted: undefined,
    secret: new Secret('canary-value'),
  };

  it('equals that of the logger, and neither prints a secret', () => {
    const [own] = linesOf((sink) => createLineWriter(sink)(fields, 'exchange'));
    const [loggers] = linesOf((sink) => createLog('info', sink).info(fields, 'exchange'));
    const { time, ...ownFields } = own ?? {};
    const { time: _, ...fieldsByLogger } = loggers ?? {};
    expect(ownFields).toEqual(fieldsByLogger);
    expect(Object.keys(own ?? {})).toEqual(Object.keys(loggers ?? {}));
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('bears the time of its writing', async () => {
    const lines = linesOf((sink) => {
      const write = createLineWriter(sink);
      for (let i = 0; i < 1_000; i += 1) write({ i }, 'exchange');
    });
    const times = lines.map(({ time }) => Date.parse(String(time)));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(Date.now() - (times.at(-1) ?? 0)).toBeLessThan(60_000);
  });
});
