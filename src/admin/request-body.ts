// The body of an admin request: bounded bytes, then strict UTF-8, then JSON that means one thing. It must not know what
// the document says.
import type { IncomingMessage } from 'node:http';
import { type JsonError, parseJsonDocument } from '../base/json-document.ts';
import { type AdminResponse, invalid, refused } from './answer.ts';
import type { RequestHead } from './request-head.ts';

export type BodyError = 'too_large' | 'late' | 'malformed' | 'gone';
export type DocumentReading =
  | { readonly ok: true; readonly document: unknown }
  | { readonly ok: false; readonly response: AdminResponse };

export class RequestBody {
  readonly #incoming: IncomingMessage;
  readonly #maxBytes: number;
  #fail: ((error: BodyError) => void) | undefined;
  #isWhole = false;

  constructor(incoming: IncomingMessage, maxBytes: number) {
    this.#incoming = incoming;
    this.#maxBytes = maxBytes;
  }

  /** True once every byte of it was taken. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Its length is told, and too much: nothing of it should be asked for. */
  get isTooLong(): boolean {
    return Number(this.#incoming.headers['content-length'] ?? 0) > this.#maxBytes;
  }

  /** Ends the reading that is under way; false when there is none. */
  interrupt(error: BodyError): boolean {
    this.#fail?.(error);
    return this.#fail !== undefined;
  }

  /** Never rejects. */
  async read(): Promise<DocumentReading> {
    if (this.isTooLong) return { ok: false, response: RESPONSES.too_large };
    const bytes = await this.#collect();
    return typeof bytes === 'string' ? { ok: false, response: RESPONSES[bytes] } : parseDocument(bytes);
  }

  #collect(): Promise<Buffer | BodyError> {
    const { promise, resolve } = Promise.withResolvers<Buffer | BodyError>();
    const incoming = this.#incoming;
    const pieces: Buffer[] = [];
    let length = 0;
    this.#fail = (error) => {
      incoming.off('data', take);
      incoming.pause();
      resolve(error);
    };
    const take = (piece: Buffer): void => {
      length += piece.length;
      if (length > this.#maxBytes) this.#fail?.('too_large');
      else pieces.push(piece);
    };
    incoming.on('data', take);
    incoming.on('end', () => {
      this.#isWhole = true;
      resolve(Buffer.concat(pieces));
    });
    incoming.on('error', () => this.#fail?.('gone'));
    incoming.on('close', () => this.#fail?.('gone'));
    // The client may have left before anybody listened; nothing would be told then.
    if (incoming.destroyed) this.#fail('gone');
    return promise.finally(() => {
      this.#fail = undefined;
    });
  }
}

/** Undefined when the fields say what a document must be sent as. */
export function judgeContentType(head: RequestHead): AdminResponse | undefined {
  const types = head.values('content-type');
  if (types.length !== 1 || !isJson(types[0] ?? '')) return NOT_JSON;
  return head.values('content-encoding').length > 0 ? ENCODED : undefined;
}

const JSON_TYPE = /^application\/json((?:[ \t]*;[ \t]*[a-z0-9_-]+=(?:"[^"\\]*"|[^\s";,]+))*)[ \t]*;?$/i;

function isJson(type: string): boolean {
  const [, parameters] = JSON_TYPE.exec(type) ?? [];
  if (parameters === undefined) return false;
  const charsets = [...parameters.matchAll(/;[ \t]*charset="?([^";\s]*)/gi)];
  return charsets.every(([, charset]) => charset?.toLowerCase() === 'utf-8');
}

function parseDocument(bytes: Buffer): DocumentReading {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { ok: false, response: invalidJson('The body is not valid UTF-8') };
  }
  if (text.trim() === '')
    return { ok: false, response: invalidJson('The body is empty: send a JSON document') };
  const reading = parseJsonDocument(text);
  if (reading.ok) return { ok: true, document: reading.value };
  const { kind, position } = reading.error;
  const where = position === undefined ? '' : `, at character ${position + 1}`;
  return { ok: false, response: invalidJson(`${JSON_ERRORS[kind]}${where}`) };
}

function invalidJson(msg: string): AdminResponse {
  return invalid([{ loc: ['body'], msg, type: 'json_invalid' }]);
}

const JSON_ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'The body is not valid JSON',
  repeated_name: 'An object gives one name twice',
  too_deep: 'The body is nested too deeply',
};

const NOT_JSON: AdminResponse = refused({
  status: 415,
  reason: 'content_type',
  detail: 'Send the document as UTF-8 with the header Content-Type: application/json',
});
const ENCODED: AdminResponse = refused({
  status: 415,
  reason: 'content_encoding',
  detail: 'Send the document as it is, without Content-Encoding',
});
const RESPONSES: Readonly<Record<BodyError, AdminResponse>> = {
  too_large: refused({ status: 413, reason: 'too_large', detail: 'Send a smaller document' }),
  late: refused({ status: 408, reason: 'late', detail: 'The request took too long: send it again' }),
  malformed: refused({ status: 400, reason: 'malformed', detail: 'Correct the framing of the body' }),
  // Nobody is there to read it; the status is for the record.
  gone: refused({
    status: 499,
    reason: 'client_gone',
    detail: 'The client left before its request was whole',
  }),
};
