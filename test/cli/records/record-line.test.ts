import { expect, it } from 'vitest';
import { formatRecord } from '../../../src/cli/records/record-line.ts';

const time = '2026-11-29T12:00:00.123Z';
const request = {
  time,
  sandbox: 'default',
  method: 'GET',
  scheme: 'https',
  authority: 'api.test:443',
  path: '/v1',
};

it.each([
  [
    'a request that was injected',
    { ...request, outcome: 'injected', status: 200, rule: 'api', duration_ms: 35.21 },
    '12:00:00.123  200 injected  GET https://api.test:443/v1  rule api  35.2 ms',
  ],
  [
    'a refusal, of another sandbox',
    {
      ...request,
      sandbox: 'agent-7',
      outcome: 'refused',
      reason: 'port_denied',
      status: 403,
      duration_ms: 0.5,
    },
    '12:00:00.123  403 refused port_denied  GET https://api.test:443/v1  sandbox agent-7  0.5 ms',
  ],
  [
    'a failed callback with its cause',
    {
      ...request,
      outcome: 'failed',
      reason: 'callback_failed',
      status: 502,
      callback: 'team',
      cause: 'status 500',
    },
    '12:00:00.123  502 failed callback_failed  GET https://api.test:443/v1  callback team  cause status 500',
  ],
  [
    'a tunnel',
    {
      time,
      sandbox: 'default',
      method: 'CONNECT',
      scheme: 'tunnel',
      authority: 'a.test:443',
      outcome: 'tunnelled',
      status: 200,
    },
    '12:00:00.123  200 tunnelled  CONNECT a.test:443',
  ],
  [
    'a request to the port of the proxy itself',
    { ...request, scheme: 'http', authority: undefined, path: '/ca.pem', outcome: 'served', status: 200 },
    '12:00:00.123  200 served  GET /ca.pem',
  ],
  ['what is no record', { status: {}, time: 7, path: null }, '-    -'],
  [
    'control characters',
    { ...request, path: '/\u001b[2J\u202e', outcome: 'x' },
    '12:00:00.123    - x  GET https://api.test:443/\\u001b[2J\\u202e',
  ],
])('%s', (_, record, line) => expect(formatRecord(record)).toBe(line));
