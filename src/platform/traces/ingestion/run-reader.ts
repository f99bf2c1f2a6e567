// One run as a JSON object, member by member as a scanner finds them: payloads go to writers, the rest is held, and what is no field
// of a run is passed over.
import { BodyError } from '../../../base/http/body-error.ts';
import type { Issue, Loc } from '../../../base/schema.ts';
import { Beginning, DISCARD } from './beginning.ts';
import { FieldWriter, PAYLOAD_FIELDS, type PayloadField } from './field-writer.ts';
import type { Tap } from './json/json-scanner.ts';
import type { HeldValues, RequestMemory } from './request-memory.ts';
import { memberNames } from './run-schema.ts';

/** Of one member that is no payload: the longest `dotted_order` is shorter. */
const MAX_MEMBER_BYTES = 64 * 1024;

const payloadNames: ReadonlySet<string> = new Set(PAYLOAD_FIELDS);

/** A run as it was sent. */
export type SentRun = {
  readonly members: Record<string, unknown>;
  readonly fields: Map<PayloadField, HeldValues>;
};

type Member = { readonly name: string; readonly tap: Beginning };
type Field = { readonly name: PayloadField; readonly tap: FieldWriter };

export class RunReader {
  readonly #memory: RequestMemory;
  readonly #loc: Loc;
  readonly #issues: Issue[];
  readonly run: SentRun = { members: Object.create(null) as Record<string, unknown>, fields: new Map() };
  #member: Member | undefined;
  #field: Field | undefined;
  #ended: Field[] = [];

  constructor(memory: RequestMemory, loc: Loc, issues: Issue[]) {
    this.#memory = memory;
    this.#loc = loc;
    this.#issues = issues;
  }

  /** A member begins. */
  open(name: string | undefined): Tap {
    if (name === undefined) return DISCARD;
    if (isPayload(name)) {
      this.#field = { name, tap: new FieldWriter(name, this.#memory) };
      return this.#field.tap;
    }
    if (!memberNames.has(name)) return DISCARD;
    this.#member = { name, tap: new Beginning(MAX_MEMBER_BYTES) };
    return this.#member.tap;
  }

  /** It has ended. */
  close(): void {
    if (this.#field !== undefined) this.#ended.push(this.#field);
    if (this.#member !== undefined) this.#take(this.#member);
    this.#field = undefined;
    this.#member = undefined;
  }

  #take({ name, tap }: Member): void {
    this.#memory.takeFacts(tap.length + 64);
    if (tap.isCut)
      this.#issues.push({
        loc: [...this.#loc, name],
        msg: `Input must have at most ${MAX_MEMBER_BYTES} bytes of JSON`,
        type: 'string_too_long',
      });
    else this.run.members[name] = JSON.parse(tap.text()) as unknown;
  }

  /** To be awaited before the next bytes of the body come. Throws a DomainError where the disk is full. */
  async settle(): Promise<void> {
    const ended = this.#ended;
    this.#ended = [];
    for (const { name, tap } of ended) {
      const held = await tap.finish();
      if (held !== undefined) this.run.fields.set(name, held);
    }
    await this.#field?.tap.drain();
  }
}

export function isPayload(name: string): name is PayloadField {
  return payloadNames.has(name);
}

/** Runs of one request. */
export function tooManyRuns(limit: number): BodyError {
  return new BodyError('too_large', `The body has more than ${limit} runs`);
}
