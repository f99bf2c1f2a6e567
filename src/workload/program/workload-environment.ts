// The variables of a workload: defaults, placeholders of its rules, its own, and what makes its clients use the proxy. Nothing of this
// process. Pure.
import { proxyVariables } from '../../box-host/bubblewrap/environment.ts';

export type WorkloadVariables = {
  readonly own: Readonly<Record<string, string>>;
  /** Where it has its temporary files; its home as well. */
  readonly temporary: string;
  readonly memBytes: number | undefined;
  /** Absent: it has no proxy. */
  readonly proxy?: {
    readonly url: string;
    /** A file that it can read. */
    readonly bundle: string;
    readonly placeholders: Readonly<Record<string, string>>;
  };
};

/** The rest is for what is outside of the heap: buffers, threads, and the programs that it starts. */
const HEAP_SHARE = 0.75;

export function workloadEnvironment({
  own,
  temporary,
  memBytes,
  proxy,
}: WorkloadVariables): Readonly<Record<string, string>> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: temporary,
    TMPDIR: temporary,
    SHELL: '/bin/sh',
    LANG: 'C.UTF-8',
    // Node takes the memory of the machine for its own, and collects garbage too late to stay within a limit.
    ...(memBytes !== undefined && { NODE_OPTIONS: `--max-old-space-size=${heapMebibytes(memBytes)}` }),
    ...proxy?.placeholders,
    ...own,
    ...(proxy && proxyVariables(proxy.url, proxy.bundle)),
  };
}

function heapMebibytes(memBytes: number): number {
  return Math.max(16, Math.floor((memBytes * HEAP_SHARE) / 1024 ** 2));
}
