// What does a request on a kept-alive HTTP/2 connection cost? One stream, several, several connections.
import { type Level, type Question, cpuColumn, latencyColumns, warmUp } from '../support/question.ts';
import { keepAliveRun, measureRate } from '../support/keep-alive.ts';
import type { Subject } from '../support/subject.ts';

const SHAPES = {
  h2_1: { clients: 1, streams: 1 },
  h2_8: { clients: 1, streams: 8 },
  h2_4x8: { clients: 4, streams: 8 },
  h2_4x32: { clients: 4, streams: 32 },
  h2_4x100: { clients: 4, streams: 100 },
} as const;
type Shape = keyof typeof SHAPES;

const loads: Readonly<Record<Level, readonly Shape[]>> = {
  tiny: ['h2_4x8'],
  quick: ['h2_4x8'],
  default: ['h2_4x8'],
  full: ['h2_1', 'h2_8', 'h2_4x8', 'h2_4x32', 'h2_4x100'],
};
const QUICK: readonly string[] = ['rule', 'nginx'];
/** node:http2 needs longer than HTTP/1.1 until its code is compiled. */
const WARM_UP = 3;

export const keepAliveH2: Question = {
  name: 'keep-alive-h2',
  title: 'Requests on kept-alive HTTP/2 connections',
  loads: {
    h2_1: '1 connection, 1 stream at a time',
    h2_8: '1 connection, 8 streams at a time',
    h2_4x8: '4 connections, 8 streams at a time on each',
    h2_4x32: '4 connections, 32 streams at a time on each',
    h2_4x100: '4 connections, 100 streams at a time on each',
    h2_rate: '4 connections, a constant rate; latency from the time a request was due',
  },
  columns: [cpuColumn, ...latencyColumns, { figure: 'rss_mb', title: 'RSS MB', digits: 0 }],
  async measure(stage) {
    const { level, warmUpMs } = stage.effort;
    const isAsked = ({ name, protocols }: Subject): boolean =>
      protocols.includes('h2') && (level !== 'quick' || QUICK.includes(name));
    const subjects = stage.subjects.filter(isAsked);
    stage.say('keep-alive-h2: warming up');
    const longer = { ...SHAPES.h2_4x8, durationMs: warmUpMs * WARM_UP };
    await warmUp(subjects.map((subject) => keepAliveRun(stage, subject, 'h2_4x8', longer)));
    const shapes = loads[level];
    const series = await stage.measure(
      shapes.flatMap((shape) =>
        subjects.map((subject) => keepAliveRun(stage, subject, shape, SHAPES[shape])),
      ),
    );
    if (level !== 'full') return { series };
    const shape = SHAPES.h2_4x8;
    return measureRate(stage, {
      subjects,
      closed: series,
      load: 'h2_4x8',
      reference: ['rule'],
      runOf: (subject, ratePerSecond) => keepAliveRun(stage, subject, 'h2_rate', { ...shape, ratePerSecond }),
    });
  },
};
