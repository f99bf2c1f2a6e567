// What does a request on a kept-alive HTTP/1.1 connection cost? One client, several, and a constant rate; CPU of the
// processes in between, latency, and their memory under this load.
import { keepAliveRun, measureRate } from '../support/keep-alive.ts';
import type { KeepAliveLoad } from '../support/measure.ts';
import {
  type Level,
  type Question,
  type Stage,
  cpuColumn,
  latencyColumns,
  warmUp,
} from '../support/question.ts';
import type { Run } from '../support/round.ts';
import type { Subject } from '../support/subject.ts';

const CLIENTS = { h1_1: 1, h1_8: 8, h1_32: 32, h1_128: 128 } as const;
type ClosedLoad = keyof typeof CLIENTS;

const loads: Readonly<Record<Level, readonly ClosedLoad[]>> = {
  tiny: ['h1_1', 'h1_32'],
  quick: ['h1_1', 'h1_32'],
  default: ['h1_1', 'h1_32'],
  full: ['h1_1', 'h1_8', 'h1_32', 'h1_128'],
};

/** What the quick run compares; in the other runs every subject runs under every load. */
const QUICK: Readonly<Partial<Record<ClosedLoad, readonly string[]>>> = {
  h1_1: ['direct', 'rule', 'nginx'],
  h1_32: ['relay', 'rule', 'callback', 'nginx', 'goproxy', 'squid'],
};

export const keepAlive: Question = {
  name: 'keep-alive',
  title: 'Requests on kept-alive HTTP/1.1 connections',
  loads: {
    h1_1: '1 client, the next request after each response',
    h1_8: '8 clients, the next request after each response',
    h1_32: '32 clients, the next request after each response',
    h1_128: '128 clients, the next request after each response',
    rate: '32 clients, a constant rate; latency from the time a request was due',
  },
  columns: [cpuColumn, ...latencyColumns, { figure: 'rss_mb', title: 'RSS MB', digits: 0 }],
  async measure(stage) {
    const { level } = stage.effort;
    const subjects = stage.subjects.filter(({ protocols }) => protocols.includes('h1'));
    const runs = loads[level].flatMap((load) =>
      subjects
        .filter(({ name }) => level !== 'quick' || QUICK[load]?.includes(name))
        .map((subject) => runOf(stage, subject, load)),
    );
    stage.say('keep-alive: warming up');
    const warm = loads[level].includes('h1_32') ? 'h1_32' : 'h1_1';
    await warmUp(
      subjects
        .filter(({ name }) => runs.some((run) => run.subject === name))
        .map((subject) => runOf(stage, subject, warm, { durationMs: stage.effort.warmUpMs })),
    );
    const series = await stage.measure(runs);
    if (level !== 'full' && level !== 'tiny') return { series };
    return measureRate(stage, {
      subjects,
      closed: series,
      load: 'h1_32',
      // Every run has these.
      reference: ['direct', 'relay', 'tunnel', 'rule', 'callback'],
      runOf: (subject, ratePerSecond) => ({
        ...runOf(stage, subject, 'h1_32', { ratePerSecond }),
        load: 'rate',
      }),
    });
  },
};

function runOf(stage: Stage, subject: Subject, load: ClosedLoad, more?: Partial<KeepAliveLoad>): Run {
  const clients = stage.effort.level === 'tiny' ? Math.min(CLIENTS[load], 4) : CLIENTS[load];
  return keepAliveRun(stage, subject, load, { clients, ...more });
}
