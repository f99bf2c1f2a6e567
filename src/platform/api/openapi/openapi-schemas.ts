// The schemas that an OpenAPI document shares: what a schema defines beside itself is moved to one place and referenced
// there. Pure.
import type { JsonSchema } from './openapi-components.ts';

export type ComponentSchemas = {
  /** The schema without its definitions. The input form of a definition may differ from its output form. */
  take(
    schema: JsonSchema,
    from: { readonly io: 'input' | 'output'; readonly operationId: string },
  ): JsonSchema;
  all(): Readonly<Record<string, JsonSchema>>;
};

export function createComponentSchemas(fixed: Readonly<Record<string, JsonSchema>>): ComponentSchemas {
  const found = new Map(Object.entries(fixed));
  return {
    take(schema, { io, operationId }) {
      const { $schema: _, $defs = {}, ...rest } = schema as JsonSchema & { readonly $defs?: JsonSchema };
      // Zod's own names are unique only within one schema.
      const rename = (name: string): string =>
        name.startsWith('__') ? `${operationId}${name}` : io === 'input' ? `${name}Input` : name;
      for (const [name, definition] of Object.entries($defs)) {
        const moved = pointed(definition, rename) as JsonSchema;
        const known = found.get(rename(name));
        if (known !== undefined && JSON.stringify(known) !== JSON.stringify(moved))
          throw new Error(`two schemas are called ${rename(name)}`);
        found.set(rename(name), moved);
      }
      return pointed(rest, rename) as JsonSchema;
    },
    all: () => Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

const LOCAL = '#/$defs/';

function pointed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => pointed(one, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string' && member.startsWith(LOCAL)
        ? [key, `#/components/schemas/${rename(member.slice(LOCAL.length))}`]
        : [key, pointed(member, rename)],
    ),
  );
}
