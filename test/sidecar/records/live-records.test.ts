import { expect, it } from 'vitest';
import type { ExchangeRecord } from '../../../src/proxy/record.ts';
import { LiveRecords } from '../../../src/sidecar/records/live-records.ts';

const record: ExchangeRecord = {
  ...{ sandbox: 'default', revision: 1, outcome: 'forwarded', path: '/"x"' },
  ...{ bytes_up: 1, bytes_down: 2, duration_ms: 3 },
};

it('followers get each record, and its text as a JSON object, until they end', () => {
  const live = new LiveRecords();
  live.tell(record);
  const texts: string[] = [];
  const end = live.follow((given, text) => {
    if (given === record) texts.push(text());
  });
  const endOther = live.follow((_, text) => void texts.push(text()));
  expect(live.followers).toBe(2);
  live.tell(record);
  end();
  endOther();
  live.tell(record);
  expect(texts).toHaveLength(2);
  // The same text, which was made once.
  expect(texts[0]).toBe(texts[1]);
  const { time, ...rest } = JSON.parse(texts[0] ?? '');
  expect(rest).toEqual(record);
  expect(Date.parse(time)).toBeGreaterThan(0);
});
