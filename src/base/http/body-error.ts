// What is wrong with the content of a request body that a route reads as a stream: its coding, its size once decoded, its
// parts. The message is for the client and never quotes what was sent.

export type BodyErrorKind =
  | 'content_type'
  /** A content coding that the route does not accept. */
  | 'content_coding'
  /** The bytes are not what Content-Encoding announces. */
  | 'not_decodable'
  | 'malformed_multipart'
  | 'too_large';

export class BodyError extends Error {
  override readonly name: string = 'BodyError';
  readonly kind: BodyErrorKind;
  /** Of the response. */
  readonly fields: Readonly<Record<string, string>>;

  constructor(kind: BodyErrorKind, message: string, fields: Readonly<Record<string, string>> = {}) {
    super(message);
    this.kind = kind;
    this.fields = fields;
  }
}
