// The fields of relayed requests and responses: those of a connection end at this server (RFC 9110 §7.6.1).
import type { RequestHead } from '../../../base/http/request-head.ts';
import { isGatewayField } from '../access/gateway-callers.ts';

const OF_CONNECTION: readonly string[] = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

export function requestFields(
  head: Pick<RequestHead, 'names' | 'values'>,
): readonly (readonly [string, string])[] {
  const dropped = new Set([...OF_CONNECTION, ...namesIn(head.values('connection'))]);
  return head.names
    .filter((name) => !dropped.has(name) && !isGatewayField(name))
    .flatMap((name) => head.values(name).map((value) => [name, value] as const));
}

/** With capitals, as this server writes its own: where both have a field, that of the application is sent. */
export function responseFields(headers: readonly (readonly [string, string])[]): {
  readonly fields: Readonly<Record<string, string>>;
  readonly cookies: readonly string[];
} {
  const valuesOf = (wanted: string): readonly string[] =>
    headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
  // The body is sent as a stream, whatever length the application has announced.
  const dropped = new Set([
    ...OF_CONNECTION,
    'content-length',
    'set-cookie',
    ...namesIn(valuesOf('connection')),
  ]);
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  const kept = [...names].filter((name) => !dropped.has(name));
  return {
    fields: Object.fromEntries(kept.map((name) => [withCapitals(name), valuesOf(name).join(', ')])),
    cookies: valuesOf('set-cookie'),
  };
}

function withCapitals(name: string): string {
  return name.replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}

/** What a field Connection names is of the connection too. */
function namesIn(values: readonly string[]): readonly string[] {
  return values.flatMap((value) => value.split(',')).map((name) => name.trim().toLowerCase());
}
