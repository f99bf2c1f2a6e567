// What do bodies and streams cost? 100 MB in each direction over both versions, requests with 1 KB, and the delay of
// server-sent events.
import { join } from 'node:path';
import type { BodyCommand, BodyResult } from '../support/body-client.ts';
import { type Child, cpuMs } from '../support/children.ts';
import { pidsOf } from '../support/measure.ts';
import { percentilesOf } from '../support/percentiles.ts';
import type { Question } from '../support/question.ts';
import type { Round, Run } from '../support/round.ts';
import { LOAD_CORE } from '../support/scene.ts';
import type { Protocol, Subject } from '../support/subject.ts';

const MB = 1_000_000;
const EVENTS = 200;
const EVERY_MS = 5;

export const bodies: Question = {
  name: 'bodies',
  title: 'Bodies and streams',
  loads: {
    down_h1: '100 MB down, HTTP/1.1',
    up_h1: '100 MB up, HTTP/1.1',
    down_h2: '100 MB down, HTTP/2',
    up_h2: '100 MB up, HTTP/2',
    kb_h1: 'POST of 1 KB, 8 connections, HTTP/1.1',
    kb_h2: 'POST of 1 KB, 8 connections, HTTP/2',
    events_h1: `an event every ${EVERY_MS} ms, delay of each, HTTP/1.1`,
    events_h2: `an event every ${EVERY_MS} ms, delay of each, HTTP/2`,
  },
  columns: [
    { figure: 'mb_per_second', title: 'MB/s', digits: 0 },
    { figure: 'cpu_ms_per_100_mb', title: 'CPU ms/100 MB', digits: 0 },
    { figure: 'cpu_us', title: 'CPU us/request', digits: 1 },
    { figure: 'p50_ms', title: 'p50 ms', digits: 3 },
    { figure: 'p99_ms', title: 'p99 ms', digits: 3 },
  ],
  async measure(stage) {
    const { children, scene, effort } = stage;
    const program = join(import.meta.dirname, '..', 'support', 'body-client.ts');
    const client = children.start('body client', [process.execPath, program], {
      core: LOAD_CORE,
      output: 'ipc',
    });
    const port = await scene.startBodyOrigin();
    const bytes = effort.level === 'tiny' ? MB : 100 * MB;
    const runs = (['h1', 'h2'] as const).flatMap((protocol) =>
      stage.subjects.filter(isAsked(protocol)).flatMap((subject) => {
        const run = (
          load: string,
          command: (folder: string) => Omit<BodyCommand, 'target' | 'protocol'>,
        ): Run => ({
          load: `${load}_${protocol}`,
          subject: subject.name,
          measure: () => measure(client, subject, { port, protocol, command }),
        });
        return [
          run('down', (folder) => ({ path: `${folder}/down?bytes=${bytes}`, downloadBytes: bytes })),
          run('up', (folder) => ({ path: `${folder}/up`, uploadBytes: bytes })),
          run('kb', (folder) => ({
            path: `${folder}/up`,
            uploadBytes: 1_000,
            connections: 8,
            durationMs: effort.durationMs,
          })),
          run('events', (folder) => ({
            path: `${folder}/events?count=${EVENTS}&every_ms=${EVERY_MS}`,
            events: EVENTS,
          })),
        ];
      }),
    );
    const series = await stage.measure(runs, { rounds: Math.min(effort.rounds, 9) });
    await client.stop();
    return { series, notes: ['origin and client are node:http and node:http2; direct is their limit'] };
  },
};

/** The paths of a reverse proxy lead to this origin in nginx only. */
function isAsked(protocol: Protocol): (subject: Subject) => boolean {
  return ({ name, isForward, protocols }) =>
    protocols.includes(protocol) &&
    (isForward || name === 'nginx') &&
    name !== 'callback' &&
    name !== 'no-records';
}

type Ask = {
  readonly port: number;
  readonly protocol: Protocol;
  command(folder: string): Omit<BodyCommand, 'target' | 'protocol'>;
};

async function measure(client: Child, subject: Subject, { port, protocol, command }: Ask): Promise<Round> {
  const pids = pidsOf(subject);
  const target = subject.target(port);
  const isInjected = target.heads[0]?.includes(' /v1/') === true;
  const asked = command(isInjected ? '/v1' : '/v0');
  const beforeMs = cpuMs(pids);
  const result = (await client.ask({ target, protocol, ...asked })) as
    | BodyResult
    | { readonly error: string };
  if ('error' in result) throw new Error(result.error);
  const usedMs = cpuMs(pids) - beforeMs;
  const bytes = asked.downloadBytes ?? asked.uploadBytes ?? 0;
  const { p50, p99 } = percentilesOf([result.latencies]);
  const latency = { p50_ms: p50, p99_ms: p99 };
  const cpu = (figures: Round): Round => (pids.length === 0 ? {} : figures);
  if (bytes < MB) {
    const perRequest = (usedMs * 1000) / Math.max(result.requests, 1);
    return { ...latency, ...(asked.events === undefined ? cpu({ cpu_us: perRequest }) : {}) };
  }
  return {
    mb_per_second: bytes / MB / result.seconds,
    ...cpu({ cpu_ms_per_100_mb: (usedMs * 100 * MB) / bytes }),
  };
}
