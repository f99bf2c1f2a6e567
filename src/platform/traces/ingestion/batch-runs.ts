// The body of `POST /runs/batch`: an object with lists of runs, cut into runs as it arrives.
import type { RunPart } from '../runs/run-part.ts';
import { DISCARD } from './beginning.ts';
import { CollectedRuns, jsonIssue } from './collected-runs.ts';
import type { ScanHandler, Tap, ValueKind } from './json/json-scanner.ts';
import type { RequestMemory } from './request-memory.ts';
import { RunReader, tooManyRuns } from './run-reader.ts';
import type { IngestionTimes, Kind } from './run-schema.ts';
import { scanBody } from './sliced-body.ts';

/** The levels of the text: the whole, its lists, their runs, the members of these. */
const [WHOLE, LIST, RUN, MEMBER] = [0, 1, 2, 3];

type Context = IngestionTimes & { readonly maxRuns: number };

/** Throws InvalidInput, BodyError, what the body throws, and a DomainError where the disk is full. */
export async function readBatchRuns(
  body: AsyncIterable<Uint8Array>,
  memory: RequestMemory,
  context: Context,
): Promise<readonly RunPart[]> {
  const reader = new BatchReader(memory, context);
  const error = await scanBody(memory.turn.of(body), {
    ...{ handler: reader, depth: MEMBER, memory },
    settle: () => reader.settle(),
  });
  if (error !== undefined) reader.runs.refuse(jsonIssue(['body'], error));
  const parts = reader.runs.finish();
  await memory.turn.finish();
  return parts;
}

type Place = { readonly kind: Kind; readonly at: number };
type Reading = Place & { readonly reader: RunReader };

class BatchReader implements ScanHandler {
  readonly runs = new CollectedRuns();
  readonly #memory: RequestMemory;
  readonly #context: Context;
  #kind: Kind | undefined;
  #at = 0;
  #count = 0;
  #current: Reading | undefined;
  #ended: Reading[] = [];

  constructor(memory: RequestMemory, context: Context) {
    this.#memory = memory;
    this.#context = context;
  }

  open(depth: number, name: string | undefined, kind: ValueKind): Tap | undefined {
    if (depth === MEMBER) return this.#current?.reader.open(name) ?? DISCARD;
    if (depth === RUN) return this.#openRun(kind);
    if (depth === LIST) return this.#openList(name, kind);
    if (kind === 'object') return undefined;
    this.runs.refuse({ loc: ['body'], msg: 'Input must be an object', type: 'dict_type' });
    return DISCARD;
  }

  close(depth: number): void {
    if (depth === MEMBER) this.#current?.reader.close();
    if (depth === RUN && this.#current !== undefined) {
      this.#ended.push(this.#current);
      this.#current = undefined;
    }
    if (depth === LIST || depth === WHOLE) this.#kind = undefined;
  }

  #openList(name: string | undefined, kind: ValueKind): Tap | undefined {
    if ((name !== 'post' && name !== 'patch') || kind === 'null') return DISCARD;
    if (kind !== 'array') {
      this.runs.refuse({ loc: ['body', name], msg: 'Input must be a list of runs', type: 'list_type' });
      return DISCARD;
    }
    this.#kind = name;
    this.#at = 0;
    return undefined;
  }

  #openRun(kind: ValueKind): Tap | undefined {
    if (this.#kind === undefined) return DISCARD;
    const place = { kind: this.#kind, at: this.#at };
    this.#at += 1;
    this.#count += 1;
    if (this.#count > this.#context.maxRuns) throw tooManyRuns(this.#context.maxRuns);
    if (kind === 'object') {
      this.#current = { ...place, reader: new RunReader(this.#memory, locOf(place), this.runs.issues) };
      return undefined;
    }
    this.runs.refuse({ loc: locOf(place), msg: 'Input must be an object', type: 'dict_type' });
    return DISCARD;
  }

  /** To be awaited before the next bytes of the body come. */
  async settle(): Promise<void> {
    const ended = this.#ended;
    this.#ended = [];
    for (const reading of ended) {
      const { kind, reader } = reading;
      await reader.settle();
      this.runs.add(reader.run, { kind, loc: locOf(reading), isPlaced: true, ...this.#context });
      await this.#memory.pace();
    }
    await this.#current?.reader.settle();
    await this.#memory.pace();
  }
}

function locOf({ kind, at }: Place): readonly (string | number)[] {
  return ['body', kind, at];
}
