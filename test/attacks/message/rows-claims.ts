// H-12: fields that only a gateway may set, sent by the client.
import { type MessageRow, accepted, arrival, request, rowsOf } from './message-script.ts';

const claims: readonly (readonly [string, readonly string[]])[] = [
  ['x-forwarded-for', ['X-Forwarded-For: 127.0.0.1, AGENT']],
  ['x-forwarded-for-twice', ['X-Forwarded-For: AGENT', 'x-forwarded-for: AGENT']],
  ['x-forwarded-for-underscored', ['X_Forwarded_For: AGENT']],
  ['x-forwarded-host', ['X-Forwarded-Host: AGENT.test']],
  ['x-forwarded-proto', ['X-Forwarded-Proto: AGENT']],
  ['x-forwarded-port', ['X-Forwarded-Port: AGENT']],
  ['x-real-ip', ['X-Real-IP: AGENT']],
  ['forwarded', ['Forwarded: for=127.0.0.1;host=AGENT']],
  ['via', ['Via: 1.1 AGENT']],
  ['via-of-many', ['Via: 1.0 AGENT, 1.1 AGENT', 'Via: 2 AGENT']],
  ['proxy-of-the-server', ['Proxy: http://AGENT']], // httpoxy
  ['path-override', ['X-Original-URL: /AGENT', 'X-Rewrite-URL: /AGENT', 'X-Forwarded-Uri: /AGENT']],
];

export const claimRows: readonly MessageRow[] = rowsOf(
  'H-12',
  claims.map(([name, fields]) => [
    name,
    request('GET /x', fields),
    { ...accepted(arrival('GET /x')), unseen: ['AGENT'] },
  ]),
);
