// The subset of JSON Schema (draft 2020-12) that the OpenAPI document uses. Any other keyword is an error, so that no test
// ignores what it does not understand.

export type JsonSchema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly multipleOf?: number;
  readonly items?: JsonSchema | false;
  readonly prefixItems?: readonly JsonSchema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly propertyNames?: JsonSchema;
  readonly maxProperties?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly description?: string;
};

/** Keywords that do not affect validity. */
const ANNOTATIONS = ['$schema', 'default', 'description', 'examples', 'title', 'deprecated', 'id'];
const KNOWN: ReadonlySet<string> = new Set([
  ...ANNOTATIONS,
  ...['$ref', 'type', 'const', 'enum', 'format', 'pattern', 'minLength', 'maxLength'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'multipleOf', 'items', 'prefixItems'],
  ...['minItems', 'maxItems'],
  ...['properties', 'required', 'additionalProperties', 'propertyNames', 'maxProperties'],
  ...['anyOf', 'oneOf'],
]);

export type Components = Readonly<Record<string, unknown>>;

/** The schema with its references resolved. Throws for an unknown keyword. */
export function resolveSchema(schema: unknown, document: unknown, at = '#'): JsonSchema {
  if (typeof schema !== 'object' || schema === null) throw new Error(`${at} must be a schema`);
  const { $ref: reference, ...rest } = schema as Record<string, unknown>;
  if (typeof reference === 'string') {
    const { id: _, ...target } = resolveSchema(lookUp(document, reference), document, reference) as Record<
      string,
      unknown
    >;
    return { ...target, ...rest };
  }
  const resolved: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(rest)) {
    if (!KNOWN.has(keyword))
      throw new Error(
        `${at} has the unknown keyword ${keyword}: add it to json-schema, schema-values and schema-variants`,
      );
    resolved[keyword] = inner(keyword, value, (one, name) =>
      resolveSchema(one, document, `${at}/${keyword}${name}`),
    );
  }
  return resolved;
}

export function lookUp(document: unknown, reference: string): unknown {
  let found = document;
  for (const part of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    found = (found as Record<string, unknown> | undefined)?.[name];
  }
  if (found === undefined) throw new Error(`${reference} cannot be resolved`);
  return found;
}

/** The types of a schema; all of them when it names none. */
export function typesOf({ type, enum: values, const: only }: JsonSchema): readonly string[] {
  if (typeof type === 'string') return [type];
  if (type !== undefined) return type;
  if (values !== undefined) return [...new Set(values.map(typeName))];
  if (only !== undefined) return [typeName(only)];
  return ['null', 'boolean', 'number', 'string', 'array', 'object'];
}

function typeName(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

type Resolve = (schema: unknown, name: string) => JsonSchema;

function inner(keyword: string, value: unknown, resolve: Resolve): unknown {
  if (['anyOf', 'oneOf', 'prefixItems'].includes(keyword))
    return (value as readonly unknown[]).map((one, index) => resolve(one, `/${index}`));
  if (keyword === 'properties')
    return Object.fromEntries(
      Object.entries(value as object).map(([name, one]) => [name, resolve(one, `/${name}`)]),
    );
  if (['items', 'additionalProperties', 'propertyNames'].includes(keyword) && typeof value === 'object')
    return resolve(value, '');
  return value;
}
