// Numbered documents, each of which injects a set of headers that all carry its number, by every kind of value and by
// a callback; and what a request may carry: exactly one such set. Pure.
import type { HeaderList } from '../support/message-reader.ts';

/** The workspace secret that the documents use; it changes now and then. */
export const SECRET_NAME = 'TURN';

export type Numbered = { readonly count: number; readonly secret: string };

/** For `api.test`, and in clear for `clear.test`, by a rule and for `called.test` by a callback at `callbackUrl`. */
export function documentOf({ count }: Numbered, callbackUrl: string): unknown {
  const headers = [
    { name: 'X-Plain', type: 'plaintext', value: `plain-${count}` },
    { name: 'X-Opaque', type: 'opaque', value: `opaque-${count}` },
    { name: 'X-Turn', type: 'workspace_secret', value: `turn-${count}-{${SECRET_NAME}}` },
    { name: 'Authorization', type: 'opaque', value: `Bearer sesame-${count}` },
    { name: `X-Only-${count}`, type: 'plaintext', value: String(count) },
  ];
  const mark = { name: 'X-Count', type: 'opaque', value: String(count) };
  return {
    rules: [{ name: `rule ${count}`, match_hosts: ['api.test', 'clear.test'], headers }],
    callbacks: [
      {
        name: `callback ${count}`,
        match_hosts: ['called.test'],
        url: callbackUrl,
        ttl_seconds: 60,
        request_headers: [mark],
      },
    ],
  };
}

/** What a request carries by the document, in the order of the wire. */
export function fieldsOf({ count, secret }: Numbered): HeaderList {
  return [
    ['X-Plain', `plain-${count}`],
    ['X-Opaque', `opaque-${count}`],
    ['X-Turn', `turn-${count}-${secret}`],
    ['Authorization', `Bearer sesame-${count}`],
    [`X-Only-${count}`, String(count)],
  ];
}

/** The injected fields of a request as text: of one document exactly if it equals `textOf` of that one. */
export function injectedText(headers: HeaderList): string {
  return textOf(
    headers.filter(([name]) => /^(?:x-(?:plain|opaque|turn|only-\d+)|authorization)$/i.test(name)),
  );
}

export function textOf(fields: HeaderList): string {
  return fields.map((field) => field.join(': ')).join('\n');
}

/** The number that a set claims first; it counts for nothing unless the whole set is that one's. */
export function countIn(text: string): number {
  return Number(/plain-(\d+)/.exec(text)?.[1] ?? Number.NaN);
}
