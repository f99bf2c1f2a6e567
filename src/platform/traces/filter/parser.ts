// The filter language: the text of a filter to what it means.
//
//   parseFilter('and(eq(run_type, "llm"), gt(latency, "5s"))')
//
// Pure. Every issue of the meaning is listed with its position; of the grammar, the first.
import { type Condition, readComparison, searchedLength } from './comparison.ts';
import { combineParts, findSecondKeys } from './pairs.ts';
import { type Filter, toFilter } from './filter.ts';
import { type Argument, type Call, parseSyntax } from './syntax.ts';
import { type FilterIssue, FilterSyntaxError } from './tokens.ts';

export type ParsedFilter =
  | { readonly ok: true; readonly filter: Filter }
  | { readonly ok: false; readonly issues: readonly FilterIssue[] };

export function parseFilter(text: string): ParsedFilter {
  try {
    const reader = new FilterReader();
    const filter = reader.readFilter(parseSyntax(text));
    const issues = reader.issues.toSorted((a, b) => a.at - b.at);
    return filter === undefined || issues.length > 0 ? { ok: false, issues } : { ok: true, filter };
  } catch (error) {
    if (!(error instanceof FilterSyntaxError)) throw error;
    return { ok: false, issues: [error.issue] };
  }
}

/** As for one text: a database tests all conditions on a run before it looks whether its time is over. */
const MAX_SEARCHED_TOGETHER = 4_000;
const TOO_MUCH_SEARCHED = `The texts that a filter searches for have at most ${MAX_SEARCHED_TOGETHER} characters together`;

class FilterReader {
  readonly issues: FilterIssue[] = [];
  #searched = 0;

  readFilter(call: Call): Filter | undefined {
    const condition = this.#readCondition(call);
    return condition?.kind === 'part' ? toFilter(combineParts([condition])) : condition;
  }

  #readCondition(call: Call): Condition | undefined {
    if (call.name === 'not') return this.#readNot(call);
    if (call.name === 'and' || call.name === 'or') return this.#readJunction(call);
    const read = readComparison(call);
    if ('msg' in read) return this.#refuse(read.at, read.msg);
    this.#searched += searchedLength(read);
    if (this.#searched > MAX_SEARCHED_TOGETHER) return this.#refuse(call.at, TOO_MUCH_SEARCHED);
    return read;
  }

  #readNot({ at, args }: Call): Filter | undefined {
    if (args.length !== 1) return this.#refuse(at, 'Expected one argument: not(and(…)) for several');
    const [filter] = this.#readFilters(args, (one) => this.readFilter(one));
    return filter && { kind: 'not', filter };
  }

  #readJunction({ name, at, args }: Call): Filter | undefined {
    if (args.length === 0) return this.#refuse(at, 'Expected one argument or more');
    if (name === 'or')
      return { kind: 'any', filters: this.#readFilters(args, (one) => this.readFilter(one)) };
    const conditions = this.#readFilters(args, (one) => this.#readCondition(one));
    const parts = conditions.filter((one) => one.kind === 'part');
    this.issues.push(...findSecondKeys(parts));
    const others = conditions.filter((one) => one.kind !== 'part');
    return toFilter([...others, ...combineParts(parts)]);
  }

  #readFilters<T>(args: readonly Argument[], read: (call: Call) => T | undefined): readonly T[] {
    return args.flatMap((argument) => {
      const found =
        argument.kind === 'call'
          ? read(argument)
          : this.#refuse(argument.at, 'Expected an operator with its arguments');
      return found === undefined ? [] : [found];
    });
  }

  #refuse(at: number, msg: string): undefined {
    this.issues.push({ at, msg });
  }
}
