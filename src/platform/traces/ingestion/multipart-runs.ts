// The body of `POST /runs/multipart`: the run and each of its payloads are parts, in any order. They are read one after the other as
// they arrive, and what belongs together is put together at the end.
import { toLocKey } from '../../../base/schema.ts';
import type { Part } from '../../api/body/upload.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { RunPart } from '../runs/run-part.ts';
import { CollectedRuns, jsonIssue } from './collected-runs.ts';
import { FieldWriter, type PayloadField } from './field-writer.ts';
import { InvalidJson } from './json/invalid-json.ts';
import { MultipartAdditions } from './multipart-additions.ts';
import { InvalidPart, readPartBody } from './part-body.ts';
import { parsePartName } from './part-name.ts';
import type { HeldValues, RequestMemory } from './request-memory.ts';
import type { SentRun } from './run-reader.ts';
import type { IngestionTimes, Kind } from './run-schema.ts';
import { readRun } from './single-run.ts';
import { inSlices } from './sliced-body.ts';

/** Of a run that the parts so far have brought something of. */
type Draft = {
  readonly kind: Kind;
  readonly id: string;
  /** Of its own part; undefined before that. */
  run: SentRun | undefined;
  /** Whether its own part was refused. */
  isRefused: boolean;
  readonly fields: Map<PayloadField, HeldValues>;
};

/** What an object of a draft takes. */
const DRAFT_BYTES = 256;

type Context = IngestionTimes & {
  readonly memory: RequestMemory;
  readonly artifacts: Artifacts;
  readonly maxAttachments: number;
};

export type MultipartRuns = { readonly parts: readonly RunPart[]; readonly additions: MultipartAdditions };

/** Throws InvalidInput, what the body throws, and a DomainError where the disk is full; then no attachment is left. */
export async function readMultipartRuns(
  parts: AsyncIterable<Part>,
  { memory, artifacts, maxAttachments, ...times }: Context,
): Promise<MultipartRuns> {
  const additions = new MultipartAdditions(memory, artifacts, maxAttachments);
  const reader = new MultipartReader(memory, additions, times);
  try {
    for await (const part of parts) {
      await reader.take(part);
      await memory.pace();
    }
    const found = await reader.finish();
    await memory.turn.finish();
    return { parts: found, additions };
  } catch (error) {
    await additions.discard();
    throw error;
  }
}

class MultipartReader {
  readonly #memory: RequestMemory;
  readonly #additions: MultipartAdditions;
  readonly #times: IngestionTimes;
  readonly #runs = new CollectedRuns();
  readonly #drafts = new Map<string, Draft>();

  constructor(memory: RequestMemory, additions: MultipartAdditions, times: IngestionTimes) {
    this.#memory = memory;
    this.#additions = additions;
    this.#times = times;
  }

  async take(part: Part): Promise<void> {
    const name = parsePartName(part.name);
    const loc = ['body', name === undefined ? toLocKey(part.name) : part.name];
    try {
      if (name === undefined) throw new InvalidPart(UNKNOWN_NAME);
      if (name.kind === 'attachment')
        return await this.#additions.takeAttachment(name.id, name.name, { part, loc });
      if (name.kind === 'feedback')
        return this.#runs.refuse(...(await this.#additions.takeFeedback(name.id, { part, loc })));
      const draft = this.#draftOf(name.kind, name.id);
      if (name.field === undefined) await this.#takeRun(draft, part, loc);
      else await this.#takeField(draft.fields, name.field, part);
    } catch (error) {
      if (error instanceof InvalidJson) this.#runs.refuse(jsonIssue(loc, error));
      else if (error instanceof InvalidPart)
        this.#runs.refuse({ loc, msg: error.message, type: 'value_error' });
      else throw error;
    }
  }

  #draftOf(kind: Kind, id: string): Draft {
    const key = `${kind}.${id}`;
    const known = this.#drafts.get(key);
    if (known !== undefined) return known;
    this.#memory.takeFacts(DRAFT_BYTES);
    const draft: Draft = { kind, id, run: undefined, isRefused: false, fields: new Map() };
    this.#drafts.set(key, draft);
    return draft;
  }

  async #takeRun(draft: Draft, part: Part, loc: readonly string[]): Promise<void> {
    draft.isRefused = true;
    const { issues } = this.#runs;
    const before = issues.length;
    const run = await readRun(readPartBody(part, this.#memory.turn), { memory: this.#memory, loc, issues });
    // Counts what was added.
    this.#runs.refuse();
    if (run === undefined || issues.length > before) return;
    draft.isRefused = false;
    draft.run = run;
  }

  async #takeField(fields: Draft['fields'], name: PayloadField, part: Part): Promise<void> {
    const writer = new FieldWriter(name, this.#memory);
    for await (const piece of inSlices(readPartBody(part, this.#memory.turn), this.#memory.pace)) {
      writer.write(piece);
      await writer.drain();
    }
    const held = await writer.finish();
    if (held !== undefined) fields.set(name, held);
  }

  async finish(): Promise<readonly RunPart[]> {
    for (const { kind, id, run, isRefused, fields } of this.#drafts.values()) {
      const loc = ['body', `${kind}.${id}`];
      if (run === undefined) {
        if (!isRefused) this.#runs.refuse({ loc, msg: NO_RUN, type: 'missing' });
        continue;
      }
      for (const [name, held] of fields) run.fields.set(name, held);
      this.#runs.add(run, { kind, id, loc, isPlaced: true, ...this.#times });
      await this.#memory.pace();
    }
    return this.#runs.finish();
  }
}

const UNKNOWN_NAME =
  'The name of a part must be post.<run id> or patch.<run id>, with .inputs, .outputs, .events, .extra, .error or .serialized behind it for a field, feedback.<id>, or attachment.<run id>.<name without dots>';
const NO_RUN = 'A part of this name is required: the request has fields of the run';
