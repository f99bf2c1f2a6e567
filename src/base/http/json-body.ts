// The bytes of a body as JSON that means one thing: strict UTF-8, then a document in which no object repeats a name.
// Messages never quote what was sent.
import { type JsonError, parseJsonDocument } from '../json-document.ts';
import { placeOf, syntaxMistake } from '../json-mistake.ts';

export type JsonBody =
  | { readonly ok: true; readonly value: unknown }
  /** `position` is an index into the text, where it is known. */
  | { readonly ok: false; readonly msg: string; readonly position: number | undefined };

/** RFC 8259 §8.1: senders must not add a byte order mark; a reader may ignore one (`ignoresBom`) or reject it. */
export function parseJsonBody(bytes: Uint8Array, ignoresBom: boolean): JsonBody {
  let text: string;
  try {
    // By the decoder's `ignoreBOM` the mark stays in the text, where it is no JSON.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: !ignoresBom }).decode(bytes);
  } catch {
    return { ok: false, msg: 'The body is not valid UTF-8', position: undefined };
  }
  if (text.trim() === '')
    return { ok: false, msg: 'The body is empty: send a JSON document', position: undefined };
  const parsed = parseJsonDocument(text);
  if (parsed.ok) return parsed;
  const { kind, position } = parsed.error;
  return { ok: false, msg: messageOf(kind, text, position), position };
}

function messageOf(kind: JsonError['kind'], text: string, position: number | undefined): string {
  const place = placeOf(text, position);
  if (place === undefined) return MESSAGES[kind];
  const mistake = kind === 'not_json' ? `: ${syntaxMistake(text, place.position)}` : '';
  return `${MESSAGES[kind]} at line ${place.line}, column ${place.column}${mistake}`;
}

const MESSAGES: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'The body is not valid JSON',
  repeated_name: 'An object in the body repeats a name',
  too_deep: 'The body is nested too deeply',
  too_many_names: 'The objects in the body have too many names',
};
