// Parts of threads that a search returns under names of its own: `values.messages[-1].content`. Pure.
import type { Steps } from '../../../base/steps.ts';

export const EXTRACT_ROOTS = ['values', 'metadata', 'config', 'interrupts'] as const;

export type Extract = {
  readonly alias: string;
  readonly root: (typeof EXTRACT_ROOTS)[number];
  readonly steps: readonly (string | number)[];
};

/** Undefined for a text that is no path. */
export function parseExtract(alias: string, path: string): Extract | undefined {
  const [, name, rest = ''] = PATH.exec(path) ?? [];
  const root = EXTRACT_ROOTS.find((one) => one === name);
  if (root === undefined) return undefined;
  const steps = Array.from(rest.matchAll(STEP), ([, key, index]) => key ?? Number(index));
  return { alias, root, steps };
}

const PATH = /^(\w+)((?:\.[^.[\]]+|\[-?\d{1,9}\])*)$/;
const STEP = /\.([^.[\]]+)|\[(-?\d+)\]/g;

type Roots = { readonly [Root in Extract['root']]?: string | null };

/** The JSON text of what was found in the JSON texts of the roots, each of which is parsed once; null where there is nothing. */
export function* extractInSteps(extracts: readonly Extract[], row: Roots): Steps<string> {
  const roots = new Map<string, unknown>();
  const members: string[] = [];
  for (const { alias, root, steps } of extracts) {
    const text = row[root];
    if (!roots.has(root)) roots.set(root, typeof text === 'string' ? JSON.parse(text) : undefined);
    members.push(`${JSON.stringify(alias)}:${JSON.stringify(dig(roots.get(root), steps))}`);
    yield;
  }
  return `{${members.join(',')}}`;
}

/** A negative index counts from the end. */
function dig(root: unknown, steps: Extract['steps']): unknown {
  let found = root;
  for (const step of steps) {
    if (typeof step === 'number') found = Array.isArray(found) ? found.at(step) : undefined;
    else found = isRecord(found) && Object.hasOwn(found, step) ? found[step] : undefined;
  }
  return found ?? null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
