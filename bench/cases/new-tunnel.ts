// What does a new tunnel with one request cost? TCP, CONNECT, a TLS handshake with a known name, one request, close: one after
// the other, eight at once, with a resumed TLS session, with the post-quantum groups that Node offers by default.
import { type Level, type Question, type Stage, latencyColumns, warmUp } from '../support/question.ts';
import type { Run } from '../support/round.ts';
import type { ShortLived } from '../support/short-lived.ts';
import type { Subject } from '../support/subject.ts';

const SHAPES: Readonly<Record<string, Omit<ShortLived, 'targets' | 'durationMs'>>> = {
  tunnel_1: { lanes: 1 },
  tunnel_8: { lanes: 8 },
  tunnel_8_resumed: { lanes: 8, isResumed: true },
  tunnel_8_pq: { lanes: 8, groups: 'X25519MLKEM768:X25519' },
};

const loads: Readonly<Record<Level, readonly string[]>> = {
  tiny: ['tunnel_8'],
  quick: ['tunnel_8'],
  default: ['tunnel_8'],
  full: Object.keys(SHAPES),
};
const COMPARED: Readonly<Partial<Record<Level, readonly string[]>>> = {
  quick: ['rule', 'nginx'],
  default: ['direct', 'relay', 'tunnel', 'rule', 'nginx'],
};

export const newTunnel: Question = {
  name: 'new-tunnel',
  title: 'A new tunnel with one request: TCP, CONNECT, TLS handshake, request, close',
  loads: {
    tunnel_1: 'one client after the other, X25519',
    tunnel_8: '8 clients at once, X25519',
    tunnel_8_resumed: '8 clients at once, each offers the TLS session of the one before it',
    tunnel_8_pq: '8 clients at once, X25519MLKEM768 where the proxy supports it',
  },
  columns: [
    { figure: 'cpu_us', title: 'CPU us/tunnel', digits: 0 },
    ...latencyColumns,
    { figure: 'upstream_connects', title: 'upstream connects', digits: 2 },
    { figure: 'resumed', title: 'resumed', digits: 2 },
  ],
  async measure(stage) {
    const { level } = stage.effort;
    // A blind tunnel opens an upstream connection for each client, and its TLS is that of the origin.
    const subjects = stage.subjects.filter(
      ({ name, protocols }) => protocols.includes('h1') && (COMPARED[level]?.includes(name) ?? true),
    );
    stage.say('new-tunnel: warming up');
    await warmUp(subjects.map((subject) => runOf(stage, subject, 'tunnel_8')));
    const series = await stage.measure(
      loads[level].flatMap((load) => subjects.map((subject) => runOf(stage, subject, load))),
    );
    const groups = subjects.map(({ name }) => `${name} ${stage.client.groups(name).join(' and ')}`);
    return { series, notes: [`groups of the key exchange: ${groups.join(', ')}`] };
  },
};

function runOf({ client, effort }: Stage, subject: Subject, load: string): Run {
  const shape = SHAPES[load] ?? { lanes: 1 };
  // A tunnel takes longer than a request: more time for as many samples.
  const durationMs = effort.durationMs * 1.5;
  return { load, subject: subject.name, measure: () => client.shortLived(subject, { ...shape, durationMs }) };
}
