// Parts of threads that a search returns under names of its own: `values.messages[-1].content`. Pure.

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

/** In the JSON text of the root; null where there is nothing. A negative index counts from the end. */
export function digExtract({ steps }: Extract, text: string | null | undefined): unknown {
  let found: unknown = text === null || text === undefined ? undefined : JSON.parse(text);
  for (const step of steps) {
    if (typeof step === 'number') found = Array.isArray(found) ? found.at(step) : undefined;
    else found = isRecord(found) && Object.hasOwn(found, step) ? found[step] : undefined;
  }
  return found ?? null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
