// Where the ids of a body or a query are, however deep: for each the path to it, in which `*` is every member of a list.
import type { JsonSchema } from './json-schema.ts';

export type IdPlace = { readonly path: readonly string[]; readonly name: string };

export function idPlacesOf(schema: JsonSchema | undefined, path: readonly string[] = []): readonly IdPlace[] {
  if (schema === undefined) return [];
  const { format, properties = {}, items, prefixItems = [], anyOf = [], oneOf = [] } = schema;
  const inside = [...anyOf, ...oneOf].flatMap((one) => idPlacesOf(one, path));
  const members = Object.entries(properties).flatMap(([name, one]) => idPlacesOf(one, [...path, name]));
  const listed = [...prefixItems, ...(typeof items === 'object' ? [items] : [])].flatMap((one) =>
    idPlacesOf(one, [...path, '*']),
  );
  const name = path.findLast((key) => key !== '*');
  const own = format === 'uuid' && name !== undefined ? [{ path, name }] : [];
  const all = [...own, ...inside, ...members, ...listed];
  return all.filter((one, at) => all.findIndex((other) => String(other.path) === String(one.path)) === at);
}

/** `value` with another id at the place, also in a list that is empty or absent; unchanged where an object on the way is missing. */
export function withIdAt(value: unknown, [key, ...rest]: readonly string[], id: string): unknown {
  if (key === undefined) return id;
  if (key === '*' && rest.length === 0) return [id];
  if (typeof value !== 'object' || value === null) return value;
  if (key === '*') return Array.isArray(value) ? value.map((one) => withIdAt(one, rest, id)) : value;
  const member = (value as Readonly<Record<string, unknown>>)[key];
  return { ...value, [key]: rest.length === 0 ? id : withIdAt(member, rest, id) };
}

/** The first id at the place. */
export function idAt(value: unknown, [key, ...rest]: readonly string[]): string | undefined {
  if (key === undefined) return typeof value === 'string' ? value : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  return idAt(Array.isArray(value) ? value[0] : (value as Readonly<Record<string, unknown>>)[key], rest);
}
