// Errors in the format of a contract: what clients of an API look at differs, the codes and the statuses do not.
import { type HttpResponse, jsonResponse } from '../../../base/http/http-response.ts';
import type { Issue } from '../../../base/schema.ts';
import type { JsonSchema } from '../openapi/openapi-components.ts';

export type ApiError = {
  readonly status: number;
  /** For programs; does not change. */
  readonly code: string;
  /** For people. */
  readonly detail: string;
  /** Of invalid input. */
  readonly issues?: readonly Issue[];
  readonly fields?: Readonly<Record<string, string>>;
};

export type ErrorFormat = {
  readonly mediaType: string;
  readonly schema: JsonSchema;
  write(error: ApiError, requestId: string): HttpResponse;
};

const text: JsonSchema = { type: 'string' };
const issueList: JsonSchema = { type: 'array', items: { type: 'object' } };

function objectOf(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

/** `{detail, code}`, or `{detail: [issue, …]}` */
export const problemErrors: ErrorFormat = {
  mediaType: 'application/json',
  schema: { anyOf: [objectOf({ detail: text, code: text }), objectOf({ detail: issueList })] },
  write: ({ status, code, detail, issues, fields }) =>
    jsonResponse(status, issues === undefined ? { detail, code } : { detail: issues }, fields),
};

/**
 * `{detail: {error, message, error_id}}`, or issues that all have the type `value_error`: without one of that type clients of
 * sandboxes take invalid input for a failed creation.
 */
export const sandboxErrors: ErrorFormat = {
  mediaType: 'application/json',
  schema: objectOf({
    detail: { anyOf: [objectOf({ error: text, message: text, error_id: text }), issueList] },
  }),
  write({ status, code, detail, issues, fields }, requestId) {
    if (issues !== undefined)
      return jsonResponse(status, { detail: issues.map((one) => ({ ...one, type: 'value_error' })) }, fields);
    const error = code.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    return jsonResponse(status, { detail: { error, message: detail, error_id: requestId } }, fields);
  },
};

/** `{error, details, detail}`: clients that send traces print the first two, others read the last. */
export const traceErrors: ErrorFormat = {
  mediaType: 'application/json',
  schema: objectOf({
    error: text,
    details: { anyOf: [issueList, text] },
    detail: { anyOf: [issueList, text] },
  }),
  write: ({ status, code, detail, issues = detail, fields }) =>
    jsonResponse(status, { error: code, details: issues, detail: issues }, fields),
};

/** The text for people alone. */
export const textErrors: ErrorFormat = {
  mediaType: 'text/plain',
  schema: text,
  write({ status, detail, issues = [], fields }) {
    const lines = issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
    const body = `${issues.length === 0 ? detail : lines.join('\n')}\n`;
    return { status, fields: { 'Content-Type': 'text/plain; charset=utf-8', ...fields }, body };
  },
};
