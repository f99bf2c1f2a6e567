// The closed catalogue of what can be wrong with the bytes of a message. A HeadError is a value, never thrown, and always
// one of these objects, so `error === headErrors.bareLf` works. `status` is for a request; an invalid response is a 502.

type Status = 400 | 414 | 417 | 431 | 501 | 505;

/** Private, so that only objects of the catalogue have this class; checking it costs less than searching the catalogue. */
class CataloguedError<Code extends string> {
  readonly code: Code;
  readonly text: string;
  readonly status: Status;

  constructor(code: Code, text: string, status: Status) {
    this.code = code;
    this.text = text;
    this.status = status;
  }
}

export const headErrors = Object.freeze({
  bareLf: error('bare_lf', 'a line ends in LF without CR'),
  bareCr: error('bare_cr', 'a CR is not followed by LF'),
  controlByte: error('control_byte', 'the head contains a control byte'),
  emptyLine: error('empty_line', 'more than one empty line precedes the request'),
  methodMalformed: error('method_malformed', 'the method is not a token followed by one space'),
  methodTooLong: error('method_too_long', 'the method is longer than 32 bytes', 501),
  http2Preface: error('http2_preface', 'an HTTP/2 preface was sent on an HTTP/1.1 connection', 505),
  targetMalformed: error('target_malformed', 'the request target is empty or contains a forbidden byte'),
  targetTooLong: error('target_too_long', 'the request target is too long', 414),
  versionMissing: error('version_missing', 'the request line has no HTTP version'),
  versionMalformed: error('version_malformed', 'the start line does not contain HTTP/1.0 or HTTP/1.1'),
  versionUnsupported: error('version_unsupported', 'only HTTP/1.0 and HTTP/1.1 are supported', 505),
  statusMalformed: error('status_malformed', 'the status is not three digits from 100 to 599'),
  nameEmpty: error('name_empty', 'a field has no name'),
  nameMalformed: error('name_malformed', 'a field name contains a byte that is not allowed in a token'),
  colonMissing: error('colon_missing', 'a field line has no colon'),
  spaceBeforeColon: error('space_before_colon', 'a field has whitespace before its colon'),
  lineFolded: error('line_folded', 'a field line begins with whitespace'),
  framingLookalike: error('framing_lookalike', 'a field name imitates a framing field with an underscore'),
  valuePadded: error('value_padded', 'a field value in a list has whitespace around it'),
  tooManyFields: error('too_many_fields', 'the head has too many fields', 431),
  headTooLarge: error('head_too_large', 'the head is too large', 431),
  contentLengthMalformed: error('content_length_malformed', 'Content-Length is not a plain decimal number'),
  contentLengthRepeated: error('content_length_repeated', 'Content-Length occurs more than once'),
  contentLengthUnexpected: error('content_length_unexpected', 'this message must not have a Content-Length'),
  transferEncodingUnsupported: error(
    'transfer_encoding_unsupported',
    'Transfer-Encoding is not exactly "chunked"',
    501,
  ),
  transferEncodingRepeated: error('transfer_encoding_repeated', 'Transfer-Encoding occurs more than once'),
  transferEncodingUnexpected: error(
    'transfer_encoding_unexpected',
    'this message must not have a Transfer-Encoding',
  ),
  lengthAndEncoding: error(
    'length_and_encoding',
    'the message has both Content-Length and Transfer-Encoding',
  ),
  connectionMalformed: error('connection_malformed', 'Connection is not a list of tokens'),
  connectionTooLong: error('connection_too_long', 'Connection names too many options', 431),
  connectionStripsFraming: error(
    'connection_strips_framing',
    'Connection names a field for routing or framing',
  ),
  expectationUnknown: error('expectation_unknown', 'only Expect: 100-continue is supported', 417),
  chunkSizeMalformed: error('chunk_size_malformed', 'a chunk size is not plain hexadecimal'),
  chunkSizeTooLarge: error('chunk_size_too_large', 'a chunk size exceeds 2^53 - 1 or 16 digits'),
  chunkExtensionRefused: error('chunk_extension_refused', 'a request chunk has an extension'),
  chunkExtensionMalformed: error('chunk_extension_malformed', 'a chunk extension is malformed or too long'),
  chunkEndMissing: error('chunk_end_missing', 'the data of a chunk does not end in CRLF'),
  trailerMalformed: error('trailer_malformed', 'a trailer line is malformed'),
  trailerHasFraming: error('trailer_has_framing', 'a trailer names a framing field'),
  trailerTooLarge: error('trailer_too_large', 'the trailers are too large', 431),
});

export type HeadErrorCode = (typeof headErrors)[keyof typeof headErrors]['code'];
export type HeadError = { readonly code: HeadErrorCode; readonly text: string; readonly status: Status };

/** What a parser has read. Undefined: the bytes are incomplete. */
export type Reading<T> = T | HeadError | undefined;

/** Every code, for documents that list them. */
export const headErrorCodes: readonly HeadErrorCode[] = Object.values(headErrors).map(({ code }) => code);

/** True only for the objects of the catalogue: nothing built from the bytes of a message passes for an error. */
export function isHeadError(value: unknown): value is HeadError {
  return value instanceof CataloguedError;
}

function error<Code extends string>(code: Code, text: string, status: Status = 400): CataloguedError<Code> {
  return Object.freeze(new CataloguedError(code, text, status));
}
