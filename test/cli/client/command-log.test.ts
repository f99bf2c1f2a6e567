import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog, createLineWriter, type LogSink } from '../../../src/base/log.ts';
import { createCommandLog } from '../../../src/cli/client/command-log.ts';
import { createScratch } from '../../support/scratch.ts';

function createTerminal(): LogSink & { readonly lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    write: (line) => void lines.push(line),
    isBlocked: false,
    dropped: 0,
    close: async () => undefined,
  };
}

describe('the log of a command', () => {
  it('shows warnings as text and errors whole, each once, and nothing else', () => {
    const terminal = createTerminal();
    const log = createLog('debug', createCommandLog(undefined, terminal));
    for (let round = 0; round < 3; round += 1) {
      log.debug('a detail');
      log.info({ proxy: 'http://127.0.0.1:1' }, 'ready');
      log.warn('HTTPS_PROXY has no effect');
      log.warn({ file: 'rules.json', at: 'rules.0' }, 'shadowed');
      log.warn({ authority: 'api.test:443', client: '127.0.0.1' }, 'distrusted');
    }
    log.error({ error: 'TypeError' }, 'exchange failed');
    expect(terminal.lines.slice(0, 3)).toEqual([
      'sallyport: HTTPS_PROXY has no effect\n',
      'sallyport: rules.json: rules.0: shadowed\n',
      'sallyport: api.test:443: distrusted\n',
    ]);
    expect(terminal.lines.slice(3)).toEqual([
      expect.stringMatching(/^\{"level":"error",.*"exchange failed"\}\n$/),
    ]);
  });

  it('shows no control characters', () => {
    const terminal = createTerminal();
    createLog('warn', createCommandLog(undefined, terminal)).warn({ at: '\u001b[2J' }, 'odd');
    expect(terminal.lines).toEqual(['sallyport: \\u001b[2J: odd\n']);
  });

  it('shows a bounded number of warnings', () => {
    const terminal = createTerminal();
    const log = createLog('warn', createCommandLog(undefined, terminal));
    for (let i = 0; i < 1_000; i += 1) log.warn(`warning ${i}`);
    expect(terminal.lines).toHaveLength(100);
  });

  it('writes everything to its file, and shows the warnings too', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'log');
    const terminal = createTerminal();
    const sink = createCommandLog(openSync(file, 'a'), terminal);
    createLog('info', sink).warn('one');
    createLog('info', sink).info('two');
    createLineWriter(sink)({ outcome: 'tunnelled' }, 'exchange');
    await sink.close();
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(3);
    expect(terminal.lines).toEqual(['sallyport: one\n']);
  });
});
