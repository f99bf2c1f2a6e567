// Values of graphs as JSON for clients: messages in the flat form `{type, content, …}`, everything else as JSON.stringify has it.
import type { JsonText } from '../protocol/messages.ts';

/** A TypeError names what cannot be written, and where: `name` says what the value is. */
export function writeJson(value: unknown, name: string): JsonText {
  try {
    // Nothing at all, as a node may send it, has no text of its own.
    return JSON.stringify(value, flattenMessage) ?? 'null';
  } catch (error) {
    const found = findUnwritable(value, new Set());
    if (found === undefined) throw error;
    throw new TypeError(`${name} cannot be written as JSON: ${found.reason} at ${formatPath(found.path)}.`, {
      cause: error,
    });
  }
}

/** `this` has the value before `toJSON`, which writes messages in the form of the library. */
function flattenMessage(this: Record<string, unknown>, key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const raw = this[key];
  if (typeof raw !== 'object' || raw === null || typeof (raw as Message).toDict !== 'function') return value;
  const { type, data } = (raw as Message).toDict();
  return { ...data, type };
}

type Message = { toDict(): { readonly type: string; readonly data: object } };

type Unwritable = { readonly reason: string; readonly path: readonly string[] };

function findUnwritable(value: unknown, above: ReadonlySet<object>): Unwritable | undefined {
  if (typeof value === 'bigint') return { reason: 'there is a BigInt', path: [] };
  if (typeof value !== 'object' || value === null) return undefined;
  if (above.has(value)) return { reason: 'an object contains itself', path: [] };
  const inside = new Set([...above, value]);
  for (const [key, child] of Object.entries(value)) {
    const found = findUnwritable(child, inside);
    if (found !== undefined) return { reason: found.reason, path: [key, ...found.path] };
  }
  return undefined;
}

function formatPath(path: readonly string[]): string {
  return path.length === 0 ? 'the top' : `\`${path.join('.')}\``;
}
