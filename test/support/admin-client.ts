// Sends requests to the admin API as an operator's program does: with the token, one connection for each request. Checks no
// response.
import { headerValues } from './message-reader.ts';
import { WireClient } from './wire-client.ts';

export type AdminReply = {
  readonly status: number;
  /** The JSON of the body; empty if there is none. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly etag: string | undefined;
};

/** A `body` that is text is sent unchanged, anything else as JSON; `fields` are added to Host and Authorization. */
export type AskAdmin = (
  method: string,
  path: string,
  body?: unknown,
  fields?: readonly string[],
) => Promise<AdminReply>;

/** `url` is the address in the ready line. */
export function createAdminClient(url: string, token: string): AskAdmin {
  const { port } = new URL(url);
  return async (method, path, body, fields = []) => {
    await using client = await WireClient.connect(Number(port));
    const content = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const framing =
      body === undefined
        ? []
        : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(content)}`];
    const own = ['Host: localhost', `Authorization: Bearer ${token}`];
    const lines = [`${method} ${path} HTTP/1.1`, ...own, ...fields, ...framing, '', ''];
    await client.send(Buffer.from(`${lines.join('\r\n')}${content}`));
    const { head, text } = await client.readResponse();
    const isJson = headerValues(head, 'content-type')[0] === 'application/json';
    const reply = (isJson ? JSON.parse(text) : {}) as AdminReply['body'];
    return { status: head.status, body: reply, text, etag: headerValues(head, 'etag')[0] };
  };
}
