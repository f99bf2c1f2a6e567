// What a process of the platform counts, and what it looks up when it is read. Labels are bounded: a route
// by its template, never a path.
import { setTimeout } from 'node:timers/promises';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from '../../base/metrics/prometheus.ts';
import type { FinishedRequest } from './server.ts';

/** What is looked up at each reading. */
export type Readings = {
  running(): number;
  streams(): number;
  /** By the purpose of the pool. */
  pools(): Readonly<
    Record<string, { readonly size: number; readonly idle: number; readonly waiting: number }>
  >;
  /** Events of all chains, in the whole database. */
  auditEvents(): Promise<number>;
  /** Jobs by state. */
  jobs(): Promise<Readonly<Record<string, number>>>;
  /** Deployments and revisions of the database by their states. */
  deployments(): Promise<
    readonly { readonly kind: string; readonly state: string; readonly count: number }[]
  >;
  /** Bulk exports and their runs that have not ended, by their states. */
  exports(): Promise<readonly { readonly kind: string; readonly state: string; readonly count: number }[]>;
  /** One of them could not be read: it is left out. */
  onError(error: unknown): void;
};

type Labels = Readonly<Record<string, string>>;

/** For what a module counts. Labels are bounded: never a name that a tenant chose. */
export type Meters = {
  /** Adds 1, or the amount. */
  counter(name: string, help: string, labels: readonly string[]): (values: Labels, amount?: number) => void;
  /** Left out while the reading fails, or takes too long. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** How long something took: `short` where most of it takes milliseconds, else minutes. */
  seconds(
    name: string,
    help: string,
    labels: readonly string[],
    range?: keyof typeof RANGES,
  ): (values: Labels, seconds: number) => void;
};

/** Of a process that serves no API. */
export type ProcessMetrics = Meters & {
  readonly contentType: string;
  /** In the text form of Prometheus. */
  read(): Promise<string>;
};

export type Metrics = ProcessMetrics & {
  onFinished(finished: FinishedRequest): void;
};

const PREFIX = 'sallyport_platform_';
/** Upper ends of buckets. */
const RANGES = {
  short: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  long: [0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 900],
} as const;

export function createProcessMetrics(readings: Pick<Readings, 'pools' | 'onError'>): ProcessMetrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  addPools(register, readings);
  return metricsOf(register, readings);
}

export function createMetrics(readings: Readings): Metrics {
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register });
  const requests = new Counter({
    name: 'sallyport_platform_requests_total',
    help: 'Finished requests',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'sallyport_platform_request_duration_seconds',
    help: 'From the head of a request to the end of its response',
    labelNames: ['method', 'route'],
    buckets: [...RANGES.short],
    registers,
  });
  const unauthenticated = new Counter({
    name: 'sallyport_platform_failed_authentications_total',
    help: 'Responses with status 401',
    registers,
  });
  addPools(register, readings);
  addGauges(register, readings);
  return {
    ...metricsOf(register, readings),
    onFinished({ method, route = 'none', status, seconds: taken }) {
      requests.inc({ method, route, status });
      seconds.observe({ method, route }, taken);
      if (status === 401) unauthenticated.inc();
    },
  };
}

function metricsOf(register: Registry, readings: Pick<Readings, 'onError'>): ProcessMetrics {
  const registers = [register];
  return {
    counter(name, help, labels) {
      const made = new Counter({ name: `${PREFIX}${name}`, help, labelNames: [...labels], registers });
      return (values, amount = 1) => made.inc(values, amount);
    },
    seconds(name, help, labels, range = 'long') {
      const labelNames = [...labels];
      const made = new Histogram({
        name: `${PREFIX}${name}`,
        help,
        labelNames,
        buckets: [...RANGES[range]],
        registers,
      });
      return (values, taken) => made.observe(values, taken);
    },
    gauge: (name, help, read) =>
      gaugesOf(register)(name, help, [], async (one) => {
        const found = await inTime(async () => read(), readings);
        if (found === undefined) one.remove();
        else one.set(found);
      }),
    contentType: register.contentType,
    read: () => register.metrics(),
  };
}

type AddGauge = (
  name: string,
  help: string,
  labelNames: string[],
  collect: (gauge: Gauge) => unknown,
) => void;

function gaugesOf(register: Registry): AddGauge {
  return (name, help, labelNames, collect) => {
    const made: Gauge = new Gauge({
      name: `${PREFIX}${name}`,
      help,
      labelNames,
      registers: [register],
      collect: async () => void (await collect(made)),
    });
  };
}

function addPools(register: Registry, readings: Pick<Readings, 'pools'>): void {
  gaugesOf(register)('pool_connections', 'Connections to the database', ['pool', 'state'], (one) => {
    for (const [pool, { size, idle, waiting }] of Object.entries(readings.pools())) {
      one.set({ pool, state: 'busy' }, size - idle);
      one.set({ pool, state: 'idle' }, idle);
      one.set({ pool, state: 'awaited' }, waiting);
    }
  });
}

function addGauges(register: Registry, readings: Readings): void {
  const gauge = gaugesOf(register);
  gauge('requests_running', 'Requests whose response is not written yet', [], (one) =>
    one.set(readings.running()),
  );
  gauge('streams_open', 'Requests whose response is a stream or may become one', [], (one) =>
    one.set(readings.streams()),
  );
  gauge('audit_events', 'Events in the audit logs of the database', [], async (one) => {
    const events = await inTime(() => readings.auditEvents(), readings);
    if (events === undefined) one.remove();
    else one.set(events);
  });
  gauge('jobs', 'Jobs in the database', ['state'], async (one) => {
    const jobs = await inTime(() => readings.jobs(), readings);
    one.reset();
    for (const [state, count] of Object.entries(jobs ?? {})) one.set({ state }, count);
  });
  gauge('deployments', 'Deployments and their revisions in the database', ['kind', 'state'], async (one) => {
    const found = await inTime(() => readings.deployments(), readings);
    one.reset();
    for (const { kind, state, count } of found ?? []) one.set({ kind, state }, count);
  });
  gauge('exports', 'Bulk exports and their runs that have not ended', ['kind', 'state'], async (one) => {
    const found = await inTime(() => readings.exports(), readings);
    one.reset();
    for (const { kind, state, count } of found ?? []) one.set({ kind, state }, count);
  });
}

/** A reader of metrics waits for some ten seconds. */
const READING_MS = 5_000;

/** Undefined while the database does not respond: what this process counts is needed most then. */
async function inTime<T>(
  read: () => Promise<T>,
  { onError }: Pick<Readings, 'onError'>,
): Promise<T | undefined> {
  try {
    return await Promise.race([read(), setTimeout(READING_MS, undefined, { ref: false })]);
  } catch (error) {
    onError(error);
    return undefined;
  }
}
