// The OpenAPI document as the tests read it: every operation with the schemas of its parts and responses, and its route.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Route } from '../../../src/platform/api/route.ts';
import { type JsonSchema, lookUp, resolveSchema } from './json-schema.ts';

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
  readonly isValid: ValidateFunction;
};

export type DocumentedResponse = {
  /** Media types; empty when there is no body. */
  readonly types: readonly string[];
  /** Of a JSON body. */
  readonly isValid: ValidateFunction | undefined;
};

export type Operation = {
  /** `GET /v2/listeners` */
  readonly title: string;
  readonly method: Route['method'];
  readonly path: string;
  readonly route: Route;
  readonly parameters: readonly Parameter[];
  readonly body:
    | { readonly schema: JsonSchema; readonly isRequired: boolean; readonly isValid: ValidateFunction }
    | undefined;
  readonly responses: ReadonlyMap<number, DocumentedResponse>;
};

type Json = Readonly<Record<string, unknown>>;

/** Throws when the document and the routes differ. */
export function readOperations(document: unknown, routes: readonly Route[]): readonly Operation[] {
  const ajv = new Ajv2020({ strict: false, strictNumbers: true, validateFormats: false, allErrors: false });
  ajv.addSchema(document as object, 'document');
  const rest = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries((document as { paths: Json }).paths))
    for (const [method, operation] of Object.entries(item as Json)) {
      const title = `${method.toUpperCase()} ${path}`;
      const route = rest.get(title);
      if (route === undefined) throw new Error(`${title} is in the document, but is not a route`);
      rest.delete(title);
      const pointer = ['paths', path, method];
      operations.push({
        ...readRequest(document, operation as Json, ajv),
        ...{ title, method: route.method, path, route },
        responses: readResponses(document, pointer, operation as Json, ajv),
      });
    }
  if (rest.size > 0) throw new Error(`${[...rest.keys()].join(', ')} missing in the document`);
  return operations;
}

function readRequest(
  document: unknown,
  operation: Json,
  ajv: Ajv2020,
): Pick<Operation, 'parameters' | 'body'> {
  const parameters = ((operation['parameters'] ?? []) as readonly Json[]).map((parameter) => {
    const given = follow(document, parameter).value;
    const schema = resolveSchema(given['schema'], document, String(given['name']));
    const validate = compileOnce(ajv, schema);
    return {
      name: String(given['name']),
      in: given['in'] as Parameter['in'],
      isRequired: given['required'] === true,
      schema,
      get isValid() {
        return validate();
      },
    };
  });
  if (operation['requestBody'] === undefined) return { parameters, body: undefined };
  const body = follow(document, operation['requestBody'] as Json).value;
  const json = (body['content'] as Record<string, Json>)['application/json'];
  // A form or a stream.
  if (json === undefined) return { parameters, body: undefined };
  const schema = resolveSchema(json?.['schema'], document, 'body');
  const validate = compileOnce(ajv, schema);
  return {
    parameters,
    body: {
      isRequired: body['required'] === true,
      schema,
      get isValid() {
        return validate();
      },
    },
  };
}

/** Compiled on first use: to compile those of every operation takes seconds, and most tests look at a few. */
function compileOnce(ajv: Ajv2020, schema: JsonSchema): () => ValidateFunction {
  let compiled: ValidateFunction | undefined;
  return () => (compiled ??= ajv.compile(schema));
}

function readResponses(
  document: unknown,
  pointer: readonly string[],
  operation: Json,
  ajv: Ajv2020,
): ReadonlyMap<number, DocumentedResponse> {
  const responses = new Map<number, DocumentedResponse>();
  for (const [status, response] of Object.entries(operation['responses'] as Record<string, Json>)) {
    const at = follow(document, response, [...pointer, 'responses', status]);
    const content = (at.value['content'] ?? {}) as Json;
    const types = Object.keys(content);
    const json = types.find((type) => type.includes('json'));
    const isDescribed = json !== undefined && (content[json] as Json)['schema'] !== undefined;
    const reference = toReference([...at.pointer, 'content', json ?? '', 'schema']);
    const validate = compileOnce(ajv, { $ref: `document${reference}` });
    responses.set(Number(status), {
      types,
      get isValid() {
        return isDescribed ? validate() : undefined;
      },
    });
  }
  return responses;
}

function follow(
  document: unknown,
  value: Json,
  pointer: readonly string[] = [],
): { readonly value: Json; readonly pointer: readonly string[] } {
  const reference = value['$ref'];
  if (typeof reference !== 'string') return { value, pointer };
  return { value: lookUp(document, reference) as Json, pointer: reference.replace(/^#\//, '').split('/') };
}

function toReference(pointer: readonly string[]): string {
  const parts = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
  return `#/${parts.join('/')}`;
}
