// A sidecar as a child: what it writes becomes records, and it is not read while nobody takes them.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { RecordBook } from '../../../src/box-host/sidecars/record-book.ts';
import { SidecarProcess } from '../../../src/box-host/sidecars/sidecar-process.ts';
import { createScratch } from '../../support/scratch.ts';
import { cleanEnvironment } from '../../support/spawned-process.ts';

const BOX = '3b241101-e2bb-4255-8caf-4136c566a962';

/** In place of a sidecar: it writes what a sidecar writes. */
async function startProgram(script: string, records: RecordBook = new RecordBook()) {
  const scratch = await createScratch();
  const lines: string[] = [];
  const directory = join(scratch.path, 'sidecar');
  await mkdir(join(directory, 'state', 'public'), { recursive: true });
  await writeFile(join(directory, 'state', 'public', 'ca.pem'), 'the CA');
  const program = {
    command: [process.execPath, await scratch.write('program.cjs', script)],
    config: { egress: { ports: [443] }, listen: '0.0.0.0:1' },
    env: cleanEnvironment(),
  };
  const starting = SidecarProcess.start({
    program,
    place: { directory, socketPath: join(scratch.path, 's') },
    records,
    log: createLog('info', { write: (line) => void lines.push(line) }),
  });
  return { scratch, directory, lines, starting };
}

const READY = `const line = (value) => process.stdout.write(JSON.stringify({ level: 'info', ...value }) + '\\n');
line({ msg: 'ready' });
process.on('message', () => undefined);
`;
const never = new AbortController().signal;

describe('a sidecar', () => {
  it('has the config of the operator, but for what makes it a child', async () => {
    const { scratch, directory, starting } = await startProgram(READY);
    const sidecar = await starting;
    const config = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8'));
    expect(config).toMatchObject({
      egress: { ports: [443] },
      listen: '127.0.0.1:0',
      admin: { listen: `unix:${join(scratch.path, 's')}` },
      callback: { allow_private: false },
      sandboxes: { namespaces: true },
    });
    expect(sidecar.caPem).toBe('the CA');
    await sidecar.end();
    await scratch[Symbol.asyncDispose]();
  });

  it('writes records of boxes, and problems into the log', async () => {
    const records = new RecordBook();
    const { scratch, lines, starting } = await startProgram(
      `${READY}
      line({ sandbox: 'default', msg: 'exchange' });
      line({ level: 'warn', sandbox: '${BOX}', status: 407, msg: 'exchange' });
      line({ level: 'error', reason: 'of the sidecar', msg: 'something' });
      process.stdout.write('{"level":"warn", no JSON "msg":"exchange"}\\n');
      line({ sandbox: '${BOX}', status: 200, msg: 'exchange' });`,
      records,
    );
    const sidecar = await starting;
    const texts: string[] = [];
    while (texts.length < 2) {
      const { source = '', firstNumber = 0, records: more = [] } = (await records.next(never)) ?? {};
      texts.push(...more);
      records.acknowledge({ source, number: firstNumber + more.length - 1 });
    }
    expect(texts).toEqual([`{"sandbox":"${BOX}","status":407}`, `{"sandbox":"${BOX}","status":200}`]);
    expect(lines.join('')).toContain('of the sidecar');
    await sidecar.end();
    await scratch[Symbol.asyncDispose]();
  });

  it('is not read while its records are not taken', async () => {
    const records = new RecordBook();
    const counted = Promise.withResolvers<number>();
    let resumed = 0;
    const createWriter = records.createWriter.bind(records);
    records.createWriter = (onCapacity) => {
      const writer = createWriter(() => {
        resumed += 1;
        onCapacity();
      });
      const write = writer.write.bind(writer);
      let count = 0;
      writer.write = (boxId, text) => {
        write(boxId, text);
        count += 1;
        if (writer.isFull) counted.resolve(count);
      };
      return writer;
    };
    const { scratch, starting } = await startProgram(
      `${READY}
      const text = JSON.stringify({ level: 'info', sandbox: '${BOX}', path: 'x'.repeat(1000), msg: 'exchange' }) + '\\n';
      let written = 0;
      const more = () => process.stdout.write(text, () => { written += 1; if (written < 20000) more(); });
      more();`,
      records,
    );
    const sidecar = await starting;
    const full = await counted.promise;
    expect(full).toBeLessThan(2_500);
    // The pipe is read on as records are taken, to the last one.
    for (let read = 0; read < 20_000; ) {
      const { source = '', firstNumber = 0, records: more = [] } = (await records.next(never)) ?? {};
      read += more.length;
      expect(firstNumber + more.length).toBe(read);
      records.acknowledge({ source, number: read - 1 });
    }
    expect(resumed).toBeGreaterThan(0);
    await sidecar.end();
    await scratch[Symbol.asyncDispose]();
  });

  it('that does not start says why', async () => {
    const { scratch, starting } = await startProgram(
      `console.error('sallyport: the setting is wrong'); process.exit(2);`,
    );
    await expect(starting).rejects.toThrow('sallyport: the setting is wrong');
    await scratch[Symbol.asyncDispose]();
  });
});
