// What a multipart body has besides runs: feedback, which is held, and attachments, whose contents go where they are kept as they
// arrive. Both may be of runs of another request, before or after this one.
import { InvalidInput } from '../../../base/domain-error.ts';
import { readJsonBody } from '../../../base/http/json-body.ts';
import { STRICT } from '../../../base/json/json-document.ts';
import { type Issue, type Loc, parseWith } from '../../../base/schema.ts';
import type { Part } from '../../api/body/upload.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { NewAttachment } from '../artifacts/attachments.ts';
import { type NewFeedback, newFeedback } from '../feedback/feedback-schema.ts';
import { readPartBody } from './part-body.ts';
import type { RequestMemory } from './request-memory.ts';

/** What the row of an attachment takes besides its name. */
const ROW_BYTES = 256;

type Located = { readonly part: Part; readonly loc: Loc };

export class MultipartAdditions {
  readonly #memory: RequestMemory;
  readonly #artifacts: Artifacts;
  readonly #maxAttachments: number;
  readonly feedback: NewFeedback[] = [];
  readonly attachments: NewAttachment[] = [];

  constructor(memory: RequestMemory, artifacts: Artifacts, maxAttachments: number) {
    this.#memory = memory;
    this.#artifacts = artifacts;
    this.#maxAttachments = maxAttachments;
  }

  /** Each is a file, or an object of a bucket, of its own. Throws InvalidInput where there are too many. */
  async takeAttachment(runId: string, name: string, { part, loc }: Located): Promise<void> {
    if (this.attachments.length === this.#maxAttachments)
      throw new InvalidInput([{ loc, msg: tooMany(this.#maxAttachments), type: 'too_long' }]);
    this.#memory.takeFacts(ROW_BYTES + name.length);
    const written = await this.#artifacts.write(readPartBody(part, this.#memory.turn));
    const type = part.fields.get('content-type') ?? '';
    this.attachments.push({ ...written, run_id: runId, name, mime_type: type });
  }

  /** Returns what is wrong with it. */
  async takeFeedback(id: string, { part, loc }: Located): Promise<readonly Issue[]> {
    const pieces: Uint8Array[] = [];
    for await (const piece of readPartBody(part, this.#memory.turn)) {
      this.#memory.takeFacts(piece.length);
      pieces.push(Uint8Array.from(piece));
    }
    // Texts are those of users and models: what cannot be stored is replaced.
    const read = await readJsonBody(pieces, { ...STRICT, isStorable: false, ignoresBom: true });
    if (!read.ok) return [{ loc, msg: read.msg, type: 'json_invalid' }];
    const parsed = parseWith(newFeedback, read.value, loc);
    if (!parsed.ok) return parsed.issues;
    const { id: own, run_id: runId, trace_id: traceId } = parsed.value;
    if (own && own !== id) return [{ loc: [...loc, 'id'], msg: OTHER_ID, type: 'value_error' }];
    if (!runId && !traceId) return [{ loc: [...loc, 'trace_id'], msg: NO_RUN, type: 'missing' }];
    this.feedback.push({ ...parsed.value, id });
    return [];
  }

  /** Of a request whose transaction is not committed. */
  async discard(): Promise<void> {
    await this.#artifacts.discard(this.attachments.map(({ object }) => object));
  }
}

function tooMany(limit: number): string {
  return `A request has at most ${limit} attachments: send this one and those behind it in another request`;
}

const OTHER_ID = 'Input must be the id in the name of the part';
const NO_RUN = 'trace_id or run_id is required: feedback about a project is sent by POST /feedback';
