// The report as a readable table, with both sides of every ratio. Measures nothing.
import type { BenchCase, CaseName, LoadName } from './cases.ts';
import { type Figures, addedMs, cpuGoals, find } from './figures.ts';
import type { Spread } from './percentiles.ts';
import type { Report } from './report.ts';

function headline(load: LoadName, report: Report): string {
  const { clients } = report.plan;
  if (load === 'h1_1') return '1 client, closed loop';
  if (load === 'h1_32') return `${clients} clients, closed loop`;
  if (load === 'h2_4x8') return 'HTTP/2, 4 connections of 8 streams, closed loop';
  if (load === 'h2_4x100') return 'HTTP/2, 4 connections of 100 streams, closed loop';
  const rate = `${report.rate_per_second}/s, half of what the slowest reached`;
  return `${clients} connections at a constant rate (${rate}); latency from the time a request was due`;
}

export function formatReport(report: Report, cases: readonly BenchCase[]): string {
  const { machine, versions, plan, memory, start_ms: start } = report;
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, load ${machine.load_average.map((each) => each.toFixed(1)).join(' ')}`,
    `Node ${versions.node}, nginx ${versions.nginx ?? 'not installed'}, HAProxy ${versions.haproxy ?? 'not installed'}, ${report.suite} on both sides`,
    machine.pinned
      ? 'the proxy on core 0, origin and load client on core 1'
      : 'not pinned to cores: figures vary more',
    ...Object.entries(report.commands).map(([name, command]) => `  ${name.padEnd(12)}${command}`),
    '',
    ...cases.map(({ name, about }) => `  ${name.padEnd(12)}${about}`),
    '',
    `Medians of up to ${plan.rounds} rounds in turns, over HTTP/2 ${plan.h2Rounds} (least to most); CPU of the process in between, for each request`,
    ...(['h1_1', 'h1_32', 'rate', 'h2_4x8', 'h2_4x100'] as const).flatMap((load) => section(report, load)),
    `callback endpoint called ${report.callback_calls} time(s)`,
    `memory      idle ${memory.idle_mb.toFixed(1)} MB, after the load ${memory.loaded_mb.toFixed(1)} MB, highest ${memory.peak_mb.toFixed(1)} MB; after HTTP/2 ${memory.h2_loaded_mb.toFixed(1)} MB, highest ${memory.h2_peak_mb.toFixed(1)} MB`,
    `start       to the first byte of a response to an injected request, bundle: ${spread(start.warm, 0)} ms with the compile cache of the image, ${spread(start.cold, 0)} ms without`,
    '',
    ...Object.entries(report.ratios).map(([name, value]) => `${name.padEnd(24)}${value ?? 'null'}`),
    `${report.seconds.toFixed(0)} s`,
  ].join('\n');
}

function section(report: Report, load: LoadName): readonly string[] {
  const rows = report.cases.filter((each) => each.load === load);
  const [direct] = rows.filter((row) => row.case === 'direct');
  if (direct === undefined) return [];
  const ratios = Object.entries(report.ratios_by_load[load]).filter(([, value]) => value !== null);
  return [
    headline(load, report),
    '  case         rounds  CPU us/request           requests/s  p50 ms                    p90     p99 ms                    p99.9   added p50  p99',
    ...rows.map((row) => line(report.cases, row)),
    `  ceiling of the load client and the origin: ${direct.per_second.median.toFixed(0)}/s, ${direct.client_cpu_us.median.toFixed(1)} us CPU of the client for each request`,
    ...(load === 'rate' ? [`  sent later than due (direct): ${delays(direct)}`] : []),
    ...cpuRatios(rows, load),
    `  ratios: ${ratios.map(([name, value]) => `${name} ${value}`).join(', ')}`,
    '',
  ];
}

/** Both sides of each, and the goal that the design sets. */
function cpuRatios(rows: readonly Figures[], load: LoadName): readonly string[] {
  const cpu = (name: CaseName): number | undefined => find(rows, name, load)?.cpu_us?.median;
  const [ours, goal] = [cpu('rule'), cpuGoals[load]];
  return (['nginx', 'haproxy'] as const).flatMap((name) => {
    const theirs = cpu(name);
    if (ours === undefined || theirs === undefined) return [];
    const sides = `rule ${ours.toFixed(1)} us, ${name} ${theirs.toFixed(1)} us`;
    const limit = goal === undefined || name !== 'nginx' ? '' : `; goal: at most ${goal}`;
    return [`  CPU: ${sides}: ${(ours / theirs).toFixed(2)}${limit}`];
  });
}

function line(all: readonly Figures[], row: Figures): string {
  const added = (at: 'p50' | 'p99'): string => addedMs(all, row.case, row.load, at)?.toFixed(3) ?? '';
  return [
    `  ${row.case.padEnd(13)}`,
    String(row.rounds.length).padEnd(8),
    (row.cpu_us ? spread(row.cpu_us, 1) : '-').padEnd(25),
    row.per_second.median.toFixed(0).padEnd(12),
    spread(row.p50, 3).padEnd(26),
    row.p90.median.toFixed(3).padEnd(8),
    spread(row.p99, 3).padEnd(26),
    row.all.p999.toFixed(3).padEnd(8),
    ...(row.case === 'direct' ? [] : [added('p50').padEnd(11), added('p99')]),
  ].join('');
}

function delays({ delay }: Figures): string {
  return `p50 ${delay.p50.toFixed(3)} ms, p99 ${delay.p99.toFixed(3)} ms`;
}

function spread({ median, low, high }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}
