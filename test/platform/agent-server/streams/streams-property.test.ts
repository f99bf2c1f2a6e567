// Random interleavings of writers, readers, cuts, attempts and restarts of a resumable run on two processes: every reader has
// every event once, in order, whatever happens to it.
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { LostRun } from '../../../../src/platform/agent-server/streams/event-writer.ts';
import type { RunEventWriter } from '../../../../src/platform/agent-server/streams/run-streams.ts';
import { runs } from '../../../support/run-size.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { collect, createRun, startProcess, type TestProcess } from './streams-scene.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

type Place = 0 | 1;
type Command =
  | { readonly type: 'write'; readonly count: number; readonly isAwaited: boolean }
  /** By this process, while the attempt before may still write. */
  | { readonly type: 'claim'; readonly place: Place; readonly isReleased: boolean }
  | { readonly type: 'join'; readonly place: Place }
  /** Its connection is lost, and it goes on at this process. */
  | { readonly type: 'cut'; readonly reader: number; readonly place: Place }
  | { readonly type: 'restart'; readonly place: Place };

const place = fc.constantFrom<Place>(0, 1);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('write' as const),
      count: fc.integer({ min: 1, max: 20 }),
      isAwaited: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('claim' as const), place, isReleased: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('join' as const), place }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('cut' as const), reader: fc.nat({ max: 9 }), place }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restart' as const), place }) },
);

class Scene {
  readonly processes: [TestProcess, TestProcess];
  readonly runId: string;
  readonly readers: Reader[] = [];
  /** Of writes that have resolved. */
  readonly accepted: string[] = [];
  readonly #writes: Promise<void>[] = [];
  #writer: RunEventWriter | undefined;
  #executing: Place = 0;
  #written = 0;

  constructor(processes: [TestProcess, TestProcess], runId: string) {
    this.processes = processes;
    this.runId = runId;
  }

  async run(step: Command): Promise<void> {
    if (step.type === 'write') await this.#write(this.#writer, step.count, step.isAwaited);
    else if (step.type === 'claim') await this.claim(step.place, step.isReleased);
    else if (step.type === 'join') this.readers.push(new Reader(this, step.place));
    else if (step.type === 'cut') this.readers[step.reader % this.readers.length]?.cut(step.place);
    else await this.#restart(step.place);
  }

  async claim(at: Place, isReleased: boolean): Promise<void> {
    const before = this.#writer;
    if (isReleased) await before?.release();
    const { streams, claim } = this.processes[at];
    this.#writer = await streams.open(await claim(this.runId));
    this.#executing = at;
    if (isReleased || before === undefined) return;
    // It does not know yet that it was lost.
    await this.#write(before, 2, true);
    await before.release();
  }

  async #write(writer: RunEventWriter | undefined, count: number, isAwaited: boolean): Promise<void> {
    const data = Array.from({ length: count }, () => String((this.#written += 1)));
    const write = async (): Promise<void> => {
      try {
        await writer?.write(data.map((one) => ({ event: 'custom', data: one })));
        this.accepted.push(...data);
      } catch (error) {
        expect(error).toBeInstanceOf(LostRun);
      }
    };
    const written = write();
    this.#writes.push(written);
    if (isAwaited) await written;
  }

  async #restart(at: Place): Promise<void> {
    await this.processes[at][Symbol.asyncDispose]();
    this.processes[at] = await startProcess(database, 50);
    for (const reader of this.readers) reader.restarted(at);
    if (this.#executing === at) await this.claim(at === 0 ? 1 : 0, false);
  }

  async end(): Promise<void> {
    await Promise.all(this.#writes);
    await this.processes[this.#executing].finish(this.runId);
    await this.#writer?.end();
  }
}

class Reader {
  readonly seen: string[] = [];
  readonly done: Promise<void>;
  readonly #scene: Scene;
  #place: Place;
  #cut: AbortController = new AbortController();

  constructor(scene: Scene, at: Place) {
    this.#scene = scene;
    this.#place = at;
    this.done = this.#read();
  }

  cut(to: Place): void {
    this.#place = to;
    this.#cut.abort();
  }

  /** The client notices that its connection is gone. */
  restarted(at: Place): void {
    if (this.#place === at) this.#cut.abort();
  }

  async #read(): Promise<void> {
    for (;;) {
      const { signal } = (this.#cut = new AbortController());
      const after = Number(this.seen.at(-1)?.split(' ')[0] ?? -1);
      try {
        const { streams } = this.#scene.processes[this.#place];
        for await (const batch of streams.read(this.#scene.runId, { after, signal })) {
          if (signal.aborted) break;
          for (const { id, event, data } of batch) this.seen.push(`${id} ${event} ${data}`);
        }
        if (!signal.aborted) return;
      } catch (error) {
        expect(error).toBeInstanceOf(EndedEarly);
        // By the restart, which has another process take its place.
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      }
    }
  }
}

it('has no gap, no repetition and no other order for any reader', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 25 }), async (commands) => {
      const processes = await Promise.all([startProcess(database, 50), startProcess(database, 50)]);
      const { runId } = await createRun(processes[0].store, { isResumable: true });
      const scene = new Scene(processes, runId);
      scene.readers.push(new Reader(scene, 0), new Reader(scene, 1));
      await scene.claim(0, false);
      for (const step of commands) await scene.run(step);
      await scene.end();
      await Promise.all(scene.readers.map(({ done }) => done));
      const signal = new AbortController().signal;
      const stored = await collect(scene.processes[0].streams.read(runId, { after: -1, signal }));
      await Promise.all(scene.processes.map((one) => one[Symbol.asyncDispose]()));
      expect(stored.map((line) => Number(line.split(' ')[0]))).toEqual(stored.map((_, index) => index));
      const data = stored.filter((line) => line.includes('custom')).map((line) => Number(line.split(' ')[2]));
      expect(data).toEqual(data.toSorted((a, b) => a - b));
      expect(new Set(data).size).toBe(data.length);
      for (const one of scene.accepted) expect(data).toContain(Number(one));
      for (const { seen } of scene.readers) expect(seen).toEqual(stored);
    }),
    { numRuns: runs(60, 5), timeout: 60_000 },
  );
});
