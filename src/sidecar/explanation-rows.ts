// An explanation for people: a label and a text for each part of it. Pure.
import type { AskedRequest, Explanation } from './explanation.ts';

export type ExplanationRow = readonly [label: string, text: string];

/** The request comes first. */
export function explanationRows(request: AskedRequest, explanation: Explanation): readonly ExplanationRow[] {
  const { outcome, reason, entry, headers, masked, refusal, conditions } = explanation;
  return [
    ['request', `${request.method} ${shownUrl(request)}`],
    ['outcome', outcome],
    ['reason', reason],
    ...(entry ? [['entry', `${entry.list}[${entry.index}]`] as const] : []),
    ...(headers ? [['headers', headers.join(', ')] as const] : []),
    ...(masked && outcome !== 'refused'
      ? [['masked in', masked === 'body' ? 'headers and body' : 'headers'] as const]
      : []),
    ...(refusal ? [['error', `${refusal.code}: ${refusal.message}`] as const] : []),
    ...(refusal?.hint === undefined ? [] : [['hint', refusal.hint] as const]),
    ...conditions.map((condition) => ['if', condition] as const),
  ];
}

/** Without the query, which may hold a credential. */
export function shownUrl({ scheme, authority, target }: AskedRequest): string {
  return `${scheme}://${authority.text}${target.replace(/\?.*$/, '')}`;
}
