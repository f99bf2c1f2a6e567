import { expect, it } from 'vitest';
import { RefusalHistory, notingRefusals } from '../../../src/proxy/local/refusal-history.ts';
import { type ExchangeRecord, createRecorder } from '../../../src/proxy/record.ts';

function record(more: Partial<ExchangeRecord>): ExchangeRecord {
  return {
    sandbox: 'a',
    revision: 1,
    bytes_up: 0,
    bytes_down: 0,
    method: 'GET',
    authority: 'a.test:443',
    ...more,
  };
}

const denied = { outcome: 'refused', reason: 'port_denied', cause: 'detail of the operator' } as const;

it('has the public texts of a refusal and nothing else of its record', () => {
  const history = new RefusalHistory();
  history.note(record({ ...denied, path: '/v1/x', client: '10.0.0.1' }));
  expect(history.recent()).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      method: 'GET',
      authority: 'a.test:443',
      error: 'port_denied',
      message: 'the port is not allowed for this host',
      hint: expect.stringContaining('egress.ports'),
    },
  ]);
});

it.each<[string, Partial<ExchangeRecord>]>([
  ['that passed', { outcome: 'forwarded' }],
  ['that its client left', { outcome: 'failed', reason: 'client_gone' }],
  ['without an authority: its client may belong to no sandbox', { ...denied, authority: undefined }],
])('does not show an exchange %s', (_, more) => {
  const history = new RefusalHistory();
  history.note(record(more));
  expect(history.recent()).toEqual([]);
});

it('tells a client that ended the handshake what to do', () => {
  const history = new RefusalHistory();
  history.note(record({ outcome: 'failed', reason: 'client_distrusts_ca', method: 'CONNECT' }));
  expect(history.recent()).toMatchObject([
    {
      error: 'client_distrusts_ca',
      message: expect.stringContaining('does not trust'),
      hint: expect.stringContaining('/env'),
    },
  ]);
});

it('shows the last 20, the latest first', () => {
  const history = new RefusalHistory();
  for (let i = 0; i < 25; i += 1) history.note(record({ ...denied, authority: `${i}.test:443` }));
  const shown = history.recent().map(({ authority }) => authority);
  expect(shown).toHaveLength(20);
  expect([shown[0], shown.at(-1)]).toEqual(['24.test:443', '5.test:443']);
});

it('a recorder that notes refusals records what the other one records', () => {
  const written: unknown[] = [];
  const sink = { isBlocked: false };
  const recorder = createRecorder({
    write: (fields) => void written.push(fields),
    sink,
    whenBlocked: 'refuse',
  });
  const history = new RefusalHistory();
  const noting = notingRefusals(recorder, history);
  const one = record(denied);
  noting.emit(one, 0, 5);
  expect(written).toEqual([one]);
  expect(one.duration_ms).toBe(5);
  expect(noting.counts).toEqual({ emitted: 1, dropped: 0 });
  expect(history.recent()).toHaveLength(1);
  sink.isBlocked = true;
  expect(noting.isBlocked).toBe(true);
});
