// One request to a server at a unix socket, with its whole response.
import { request } from 'node:http';

export type SocketAsked = { readonly status: number | undefined; readonly text: string };

export function askAtSocket(
  socketPath: string,
  path: string,
  given: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: object;
  } = {},
): Promise<SocketAsked> {
  const { promise, resolve, reject } = Promise.withResolvers<SocketAsked>();
  const { method = 'GET', headers = {}, body } = given;
  const fields = { ...headers, ...(body && { 'content-type': 'application/json' }) };
  request({ socketPath, path, method, headers: fields }, (response) => {
    let text = '';
    response
      .setEncoding('utf8')
      .on('data', (piece: string) => (text += piece))
      .on('end', () => resolve({ status: response.statusCode, text }))
      .on('error', reject);
  })
    .on('error', reject)
    .end(body && JSON.stringify(body));
  return promise;
}
