// Numbered documents that each inject a set of headers with their number, with every kind of value and with a callback; and
// what a request may contain: exactly one such set. Pure.
import type { HeaderList } from '../support/message-reader.ts';

/** The workspace secret that the documents use; it changes from time to time. */
export const SECRET_NAME = 'TURN';

export type Numbered = { readonly count: number; readonly secret: string };

/** For `api.test`, and in plaintext `clear.test`, with a rule and for `called.test` with a callback at `callbackUrl`. */
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

/** The fields that the document injects, in the order of the wire. */
export function fieldsOf({ count, secret }: Numbered): HeaderList {
  return [
    ['X-Plain', `plain-${count}`],
    ['X-Opaque', `opaque-${count}`],
    ['X-Turn', `turn-${count}-${secret}`],
    ['Authorization', `Bearer sesame-${count}`],
    [`X-Only-${count}`, String(count)],
  ];
}

/** The injected fields of a request as text: equal to `textOf` of a document if they are exactly that document's. */
export function injectedText(headers: HeaderList): string {
  return textOf(
    headers.filter(([name]) => /^(?:x-(?:plain|opaque|turn|only-\d+)|authorization)$/i.test(name)),
  );
}

export function textOf(fields: HeaderList): string {
  return fields.map((field) => field.join(': ')).join('\n');
}

/** The first number in a set; only valid when the whole set belongs to it. */
export function countIn(text: string): number {
  return Number(/plain-(\d+)/.exec(text)?.[1] ?? Number.NaN);
}
