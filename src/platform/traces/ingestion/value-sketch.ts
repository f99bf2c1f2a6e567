// A value of any size as far as anything is derived from it (`runs/run-derivation.ts`), from bytes that arrive in pieces: its first
// values, the beginnings of its texts, and the few members that are looked for wherever they are. Memory is bounded.
import type { DerivedField } from '../runs/run-derivation.ts';
import { Beginning, DISCARD } from './beginning.ts';
import { JsonScanner, type ScanHandler, type Tap, type ValueKind } from './json/json-scanner.ts';

/** As many as a text of the length that is searched can have. */
const MAX_NODES = 33_000;
/** Of all texts and names that are kept whole together: those of the text that is searched, each character an escape. */
const WHOLE_BYTES = 400_000;
/** Of each text behind these, and of all of them: those of the pairs that are searched. */
const SHORT_TEXT_BYTES = 6_000;
const SHORT_BYTES = 200 * SHORT_TEXT_BYTES;
const MAX_DEPTH = 17;
/** Of a value that is looked for, wherever it is. */
const MAX_FOUND_BYTES = 16_384;

type Container = Record<string, unknown> | unknown[];

export class ValueSketch {
  readonly #scanner: JsonScanner;
  readonly #builder: SketchBuilder;

  constructor(field: DerivedField) {
    this.#builder = new SketchBuilder(field, (depth) => this.#scanner.reportTo(depth));
    this.#scanner = new JsonScanner(this.#builder, MAX_DEPTH);
  }

  /** Throws InvalidJson. */
  push(bytes: Uint8Array): void {
    this.#scanner.push(bytes);
  }

  /** The sketch, for `deriveValues`. Throws InvalidJson for a text that ends too early. */
  end(): unknown {
    this.#scanner.end();
    return this.#builder.finish();
  }
}

class SketchBuilder implements ScanHandler {
  readonly #field: DerivedField;
  readonly #reportTo: (depth: number) => void;
  readonly #open: Container[] = [];
  #root: unknown = null;
  #nodes = MAX_NODES;
  #bytes = WHOLE_BYTES + SHORT_BYTES;
  #taken:
    | { readonly name: string | undefined; readonly kind: ValueKind; readonly tap: Beginning }
    | undefined;
  /** What outputs say of tokens: of themselves, and the last of their messages. */
  #usage: unknown;
  #lastUsage: unknown;
  /** `messages` of outputs is open; its last one may be left out of the sketch. */
  #isInMessages = false;
  #lacksLast = false;

  constructor(field: DerivedField, reportTo: (depth: number) => void) {
    this.#field = field;
    this.#reportTo = reportTo;
  }

  open(depth: number, name: string | undefined, kind: ValueKind): Tap | undefined {
    this.#noteMessage(depth, name, kind);
    const isUsage = this.#isUsage(depth, name);
    if (!isUsage && !this.#isWanted(depth, name)) return DISCARD;
    const isContainer = kind === 'object' || kind === 'array';
    if (isContainer && !isUsage) return this.#openContainer(depth, name, kind);
    this.#nodes -= 1;
    if (this.#nodes < 0 && !isUsage) return this.#passOver();
    const limit = isUsage || kind !== 'string' ? MAX_FOUND_BYTES : this.#textLimit();
    this.#taken = { name, kind, tap: new Beginning(limit) };
    return this.#taken.tap;
  }

  #textLimit(): number {
    return Math.min(Math.max(SHORT_TEXT_BYTES, this.#bytes - SHORT_BYTES), this.#bytes);
  }

  /** Of a text or a name that is kept. Without any left no further value is. */
  #count(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes <= 0) this.#nodes = Math.min(0, this.#nodes);
  }

  #openContainer(depth: number, name: string | undefined, kind: 'object' | 'array'): Tap | undefined {
    this.#nodes -= 1;
    const isKept = this.#nodes >= 0;
    if (depth === MAX_DEPTH) {
      if (isKept) this.#add(name, null);
      return DISCARD;
    }
    // The members of what is not kept are still looked at, where one of them may be wanted.
    if (!isKept && !this.#leadsToUsage(depth)) return this.#passOver();
    const value: Container = kind === 'object' ? (Object.create(null) as Record<string, unknown>) : [];
    if (isKept) this.#add(name, value);
    this.#open.push(value);
    return undefined;
  }

  /** Enough is known. What outputs say of tokens is near the top. */
  #passOver(): Tap {
    this.#reportTo(this.#field === 'outputs' ? 3 : this.#field === 'events' ? 1 : 0);
    return DISCARD;
  }

  close(depth: number): void {
    const taken = this.#taken;
    this.#taken = undefined;
    if (taken !== undefined) {
      const value = toValue(taken.tap, taken.kind);
      if (this.#isUsage(depth, taken.name)) this.#noteUsage(depth, value);
      if (this.#nodes >= 0) this.#add(taken.name, value);
      this.#count(taken.tap.length);
    } else if (this.#open.length > depth) {
      this.#open.length = depth;
      if (depth === 1) this.#isInMessages = false;
    }
  }

  /** What `deriveValues` looks for behind the values that are kept is put where it looks. */
  finish(): unknown {
    const root = this.#root;
    if (this.#field !== 'outputs' || typeof root !== 'object' || root === null) return root;
    const outputs = root as Record<string, unknown>;
    const usage = this.#usage ?? (this.#lacksLast ? this.#lastUsage : undefined);
    if (usage !== undefined) outputs['usage_metadata'] = usage;
    return root;
  }

  #add(name: string | undefined, value: unknown): void {
    const parent = this.#open.at(-1);
    if (parent === undefined) this.#root = value;
    else if (Array.isArray(parent)) parent.push(value);
    else if (name !== undefined) {
      parent[name] = value;
      this.#count(name.length);
    }
  }

  /** Of `extra` the metadata alone, and of events the name and the time of each up to the first one of a token. */
  #isWanted(depth: number, name: string | undefined): boolean {
    if (this.#field === 'extra') return depth !== 1 || name === 'metadata';
    if (this.#field !== 'events') return true;
    if (depth === 1) this.#dropOtherEvents();
    return depth < 2 || (depth === 2 && (name === 'name' || name === 'time'));
  }

  /** Their number has no limit, and only the first one of a token is asked for. */
  #dropOtherEvents(): void {
    const events = this.#root;
    if (!Array.isArray(events) || events.length === 0) return;
    const last: unknown = events.at(-1);
    const isToken = typeof last === 'object' && last !== null && 'name' in last && last.name === 'new_token';
    if (!isToken) events.pop();
    this.#nodes = isToken ? 0 : MAX_NODES;
  }

  #leadsToUsage(depth: number): boolean {
    return this.#isInMessages && depth <= 2;
  }

  #noteMessage(depth: number, name: string | undefined, kind: ValueKind): void {
    if (this.#field !== 'outputs') return;
    if (depth === 1) this.#isInMessages = name === 'messages' && kind === 'array';
    if (!this.#isInMessages || depth !== 2) return;
    this.#lastUsage = undefined;
    this.#lacksLast = this.#nodes <= 1;
  }

  #isUsage(depth: number, name: string | undefined): boolean {
    if (this.#field !== 'outputs' || name !== 'usage_metadata') return false;
    return depth === 1 || (this.#isInMessages && depth === 3);
  }

  #noteUsage(depth: number, value: unknown): void {
    if (depth === 1) this.#usage = value;
    else this.#lastUsage = value;
  }
}

function toValue(beginning: Beginning, kind: ValueKind): unknown {
  const text = beginning.text();
  if (!beginning.isCut) return JSON.parse(text) as unknown;
  if (kind !== 'string') return null;
  // Without an escape that is cut off, and without half a character: a longer match would take quadratic time.
  const whole = text.replace(/\ufffd{1,3}$/, '').replace(/(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/, '$1');
  return JSON.parse(`${whole}"`) as unknown;
}
