// The bytes of a body as JSON: strict UTF-8, then a document by the rules of its reader. A large one is parsed in slices, so
// that it does not hold up the event loop. Messages never quote what was sent.
import { type JsonError, type JsonRules, parseJsonDocument, STRICT } from '../json/json-document.ts';
import { placeOf, syntaxMistake } from '../json/json-mistake.ts';
import { type JsonStepsError, parseJsonInSteps } from '../json/json-steps.ts';
import { finishInSlices } from '../steps.ts';
import { pathToUnstorable } from '../json/storable-text.ts';

export type JsonBody =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly msg: string;
      /** An index into the text, where it is known. */
      readonly position: number | undefined;
      /** Names and indexes that lead to a text that cannot be stored; undefined for every other error. */
      readonly unstorable?: readonly (string | number)[];
    };

type Failure = Extract<JsonBody, { ok: false }>;
type Text = { readonly ok: true; readonly text: string } | Failure;

/** RFC 8259 §8.1: senders must not add a byte order mark; a reader may ignore one (`ignoresBom`) or reject it. */
export function parseJsonBody(bytes: Uint8Array, ignoresBom: boolean): JsonBody {
  const read = readText(bytes, ignoresBom);
  return read.ok ? parseText(read.text, STRICT) : read;
}

// Up to here parsing takes a few milliseconds, also of a text that is made of brackets and names.
const SMALL_BYTES = 65_536;

/** As parseJsonBody, by `rules`, of a body in pieces; a large one takes several turns of the event loop. */
export async function readJsonBody(
  pieces: readonly Uint8Array[],
  { ignoresBom, ...rules }: JsonRules & { readonly ignoresBom: boolean },
): Promise<JsonBody> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length > SMALL_BYTES) return readLarge(pieces, { ignoresBom, ...rules });
  const [only = new Uint8Array()] = pieces;
  const read = readText(pieces.length > 1 ? Buffer.concat(pieces) : only, ignoresBom);
  if (!read.ok) return read;
  const parsed = parseText(read.text, rules);
  const unstorable = parsed.ok && rules.isStorable ? pathToUnstorable(parsed.value) : undefined;
  return unstorable === undefined ? parsed : toUnstorable(unstorable);
}

async function readLarge(
  pieces: readonly Uint8Array[],
  { ignoresBom, ...rules }: JsonRules & { readonly ignoresBom: boolean },
): Promise<JsonBody> {
  let isEmpty = true;
  function* text(): Generator<string, void, undefined> {
    for (const piece of decodeText(pieces, ignoresBom)) {
      isEmpty &&= piece.trim() === '';
      yield piece;
    }
  }
  try {
    const parsed = await finishInSlices(parseJsonInSteps(text(), rules));
    if (parsed.ok) return parsed;
    return isEmpty ? EMPTY : toLargeError(parsed.error);
  } catch (error) {
    if (error instanceof NotUtf8) return NOT_UTF8;
    throw error;
  }
}

class NotUtf8 extends Error {}

/** In pieces of at most `SMALL_BYTES`. Throws NotUtf8. */
export function* decodeText(
  pieces: Iterable<Uint8Array>,
  ignoresBom: boolean,
): Generator<string, void, undefined> {
  const decoder = createDecoder(ignoresBom);
  const decode = (bytes?: Uint8Array): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw new NotUtf8();
    }
  };
  for (const piece of pieces)
    for (let at = 0; at < piece.length; at += SMALL_BYTES) yield decode(piece.subarray(at, at + SMALL_BYTES));
  // A character that was cut off.
  yield decode();
}

/** By the decoder's `ignoreBOM` the mark stays in the text, where it is no JSON. */
function createDecoder(ignoresBom: boolean): TextDecoder {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: !ignoresBom });
}

/** Of whole texts: they keep nothing of one for the next. */
const [DECODER, BOM_DECODER] = [createDecoder(true), createDecoder(false)] as const;

function readText(bytes: Uint8Array, ignoresBom: boolean): Text {
  let text: string;
  try {
    text = (ignoresBom ? DECODER : BOM_DECODER).decode(bytes);
  } catch {
    return NOT_UTF8;
  }
  if (text.trim() === '') return EMPTY;
  return { ok: true, text };
}

const NOT_UTF8: Failure = { ok: false, msg: 'The body is not valid UTF-8', position: undefined };
const EMPTY: Failure = {
  ok: false,
  msg: 'The body is empty: send a JSON document',
  position: undefined,
};

function parseText(text: string, rules: JsonRules): JsonBody {
  const parsed = parseJsonDocument(text, rules);
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

/** Without line and column: they take longer to find than the event loop may wait. */
function toLargeError({ kind, position, path }: JsonStepsError): JsonBody {
  if (kind === 'unstorable') return toUnstorable(path);
  return { ok: false, msg: `${MESSAGES[kind]} at character ${position + 1}`, position };
}

function toUnstorable(unstorable: readonly (string | number)[]): JsonBody {
  return { ok: false, msg: UNSTORABLE, position: undefined, unstorable };
}

export const UNSTORABLE = 'Input must be text without U+0000 and without lone surrogates';

const MESSAGES: Readonly<Record<Exclude<JsonStepsError['kind'], 'unstorable'>, string>> = {
  not_json: 'The body is not valid JSON',
  repeated_name: 'An object in the body repeats a name',
  too_deep: 'The body is nested too deeply',
  long_number: 'A number in the body has too many digits',
  too_many_names: 'The objects in the body have too many names',
  too_many_values: 'The objects and lists in the body have too many values',
};
