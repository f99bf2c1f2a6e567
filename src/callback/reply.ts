// Parses a callback's response body to the headers to inject: all of them, or none and the reason. Pure.
// No reason quotes the response, which contains a credential, perhaps in the wrong place.
import { isObject, type JsonError, parseJsonDocument } from '../base/json/json-document.ts';
import { Secret } from '../base/secret.ts';
import { foldHeaderName, headerNameError, headerValueError } from '../policy/document/header-rules.ts';
import type { InjectedHeader } from '../policy/policy.ts';

const MAX_HEADERS = 64;
// What hosts accept in a head. Each response is cached, rendered and turned into masks.
const MAX_VALUE_BYTES = 16_384;

export type CallbackReply =
  | { readonly ok: true; readonly headers: readonly InjectedHeader[] }
  | { readonly ok: false; readonly reason: string };

/** Parses `{"headers": {name: value}}`, JSON in UTF-8 without a byte order mark. Other members are ignored. */
export function parseReply(bytes: Uint8Array): CallbackReply {
  const reply = parseJson(bytes);
  if (typeof reply === 'string') return { ok: false, reason: reply };
  const headers = readHeaders(reply.value);
  return typeof headers === 'string' ? { ok: false, reason: headers } : { ok: true, headers };
}

function parseJson(bytes: Uint8Array): { readonly value: unknown } | string {
  if (bytes.length === 0) return 'empty body';
  try {
    // ignoreBOM leaves the mark in the text, where JSON.parse rejects it.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const reading = parseJsonDocument(text);
    return reading.ok ? reading : REASONS[reading.error.kind];
  } catch {
    return REASONS.not_json;
  }
}

const REASONS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'body is not JSON in UTF-8',
  repeated_name: 'body repeats a member name',
  too_deep: 'body is nested too deeply',
  too_many_names: 'body has too many member names',
  too_many_values: 'body has too many values',
};

function readHeaders(reply: unknown): readonly InjectedHeader[] | string {
  if (!isObject(reply) || !Object.hasOwn(reply, 'headers')) return 'body is not an object with "headers"';
  if (!isObject(reply['headers'])) return '"headers" is not an object';
  const entries = Object.entries(reply['headers']);
  if (entries.length > MAX_HEADERS) return `more than ${MAX_HEADERS} headers`;
  const taken = new Set<string>();
  const headers: InjectedHeader[] = [];
  let valueBytes = 0;
  for (const [name, value] of entries) {
    const position = headers.length + 1;
    if (headerNameError(name) !== undefined) return `the name of header ${position} may not be injected`;
    const folded = foldHeaderName(name);
    if (taken.has(folded)) return 'two headers have one name';
    taken.add(folded);
    if (typeof value !== 'string') return `the value of header ${position} is not a string`;
    if (headerValueError(value) !== undefined)
      return `the value of header ${position} is not a valid field value`;
    valueBytes += value.length;
    if (valueBytes > MAX_VALUE_BYTES) return `the values together have more than ${MAX_VALUE_BYTES} bytes`;
    const secret = new Secret(value);
    headers.push(
      Object.freeze({ name, value: secret, masks: Object.freeze([secret, ...secret.credentials()]) }),
    );
  }
  return Object.freeze(headers);
}
