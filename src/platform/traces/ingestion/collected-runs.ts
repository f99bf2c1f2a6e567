// The runs of one request: what was sent of each, checked, as one part for each run. Every issue is reported at once.
import { InvalidInput } from '../../../base/domain-error.ts';
import type { Issue, Loc } from '../../../base/schema.ts';
import { bitOf, mergeParts, RUN_FIELDS, type RunPart, runFieldNames } from '../runs/run-part.ts';
import type { HeldValues } from './request-memory.ts';
import type { SentRun } from './run-reader.ts';
import { type FactsContext, type Kind, readFacts, type RunFacts } from './run-schema.ts';

/** Behind so many, more of them help nobody. */
const MAX_ISSUES = 100;

export class CollectedRuns {
  readonly #parts = new Map<string, RunPart>();
  readonly issues: Issue[] = [];

  add(run: SentRun, context: FactsContext): void {
    const read = readFacts(run.members, context);
    if ('issues' in read) {
      this.refuse(...read.issues);
      return;
    }
    const part = toPart(context.kind, read.facts, run.fields);
    const before = this.#parts.get(part.id);
    this.#parts.set(part.id, before === undefined ? part : mergeParts(before, part));
  }

  /** Throws InvalidInput where there are too many issues to go on. */
  refuse(...issues: readonly Issue[]): void {
    this.issues.push(...issues);
    if (this.issues.length >= MAX_ISSUES) throw new InvalidInput(this.issues);
  }

  /** Throws InvalidInput where there are issues. */
  finish(): readonly RunPart[] {
    if (this.issues.length > 0) throw new InvalidInput(this.issues);
    return [...this.#parts.values()];
  }
}

/** What is wrong with the JSON at `loc`. */
export function jsonIssue(loc: Loc, { message, position }: { message: string; position: number }): Issue {
  return { loc: [...loc, position], msg: `${message} at byte ${position + 1}`, type: 'json_invalid' };
}

function toPart(kind: Kind, facts: RunFacts, fields: SentRun['fields']): RunPart {
  const held = [...fields];
  const values = Object.assign(
    {},
    facts.values,
    ...held.map(([, one]) => ('values' in one ? one.values : {})),
  );
  const spooled = Object.fromEntries(
    held.flatMap(([name, one]: readonly [string, HeldValues]) =>
      'spooled' in one ? [[name, one.spooled]] : [],
    ),
  );
  const given = runFieldNames
    .filter(
      (field) => (fields as ReadonlyMap<string, unknown>).has(field) || RUN_FIELDS[field][0] in facts.values,
    )
    .reduce((bits, field) => bits | bitOf(field), 0);
  const patched = kind === 'patch' ? given : 0;
  return { id: facts.id, project: facts.project, start: facts.start, given, patched, values, spooled };
}
