// The door to prom-client: what this process counts, and what it asks for when it is read. Labels are bounded: a route by
// its template, never a path. It must not know who reads.
import { setTimeout } from 'node:timers/promises';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Responded } from './reception.ts';

/** What is asked for at each reading. */
export type Readings = {
  running(): number;
  pool(): { readonly size: number; readonly idle: number; readonly waiting: number };
  /** How many events all chains have, in the whole database. */
  auditEvents(): Promise<number>;
  /** Jobs by state. */
  jobs(): Promise<Readonly<Record<string, number>>>;
  /** One of the two could not be told: it is left out. */
  onError(error: unknown): void;
};

export type Metrics = {
  onResponded(responded: Responded): void;
  readonly contentType: string;
  /** In the text form of Prometheus. */
  read(): Promise<string>;
};

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export function createMetrics(readings: Readings): Metrics {
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register });
  const requests = new Counter({
    name: 'sallyport_platform_requests_total',
    help: 'Requests that are over',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'sallyport_platform_request_seconds',
    help: 'From the head of a request to the end of its answer',
    labelNames: ['method', 'route'],
    buckets: SECONDS,
    registers,
  });
  const outsiders = new Counter({
    name: 'sallyport_platform_failed_authentications_total',
    help: 'Requests that were answered 401',
    registers,
  });
  addGauges(registers, readings);
  return {
    onResponded({ method, route = 'none', status, seconds: taken }) {
      requests.inc({ method, route, status: `${Math.floor(status / 100)}xx` });
      seconds.observe({ method, route }, taken);
      if (status === 401) outsiders.inc();
    },
    contentType: register.contentType,
    read: () => register.metrics(),
  };
}

function addGauges(registers: Registry[], readings: Readings): void {
  const gauge = (
    name: string,
    help: string,
    labelNames: string[],
    collect: (gauge: Gauge) => unknown,
  ): void => {
    const made: Gauge = new Gauge({
      name: `sallyport_platform_${name}`,
      help,
      labelNames,
      registers,
      collect: async () => void (await collect(made)),
    });
  };
  gauge('requests_running', 'Requests that are not answered yet', [], (one) => one.set(readings.running()));
  gauge('pool_connections', 'Connections with the database', ['state'], (one) => {
    const { size, idle, waiting } = readings.pool();
    one.set({ state: 'busy' }, size - idle);
    one.set({ state: 'idle' }, idle);
    one.set({ state: 'awaited' }, waiting);
  });
  gauge('audit_events', 'Events in the audit logs of the database', [], async (one) => {
    const events = await inTime(readings.auditEvents(), readings);
    if (events === undefined) one.remove();
    else one.set(events);
  });
  gauge('jobs', 'Jobs in the database', ['state'], async (one) => {
    const jobs = await inTime(readings.jobs(), readings);
    one.reset();
    for (const [state, count] of Object.entries(jobs ?? {})) one.set({ state }, count);
  });
}

/** Who reads metrics waits for some ten seconds. */
const READING_MS = 5_000;

/** Undefined for what the database does not tell now: what this process counts is wanted most while it is away. */
async function inTime<T>(
  reading: Promise<T>,
  { onError }: Pick<Readings, 'onError'>,
): Promise<T | undefined> {
  try {
    return await Promise.race([reading, setTimeout(READING_MS, undefined, { ref: false })]);
  } catch (error) {
    onError(error);
    return undefined;
  }
}
