// Keeps the cores of a benchmark from going idle. An idle virtual processor is handed back to the host, and each wake-up
// waits until the host gives it back: that was a quarter of the latency of a request at p50, and milliseconds at p99, for every
// proxy alike. A loop of the scheduler's idle class gives way to everything else.
import { spawnSync } from 'node:child_process';
import type { Children } from './children.ts';
import { LOAD_CORE, PROXY_CORE } from './scene.ts';

/** It asks for the benchmark now and then, which may be killed without a chance to end it. */
const LOOP = 'while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done';

export function keepCoresAwake(children: Children): void {
  if (!children.isPinned || spawnSync('chrt', ['--idle', '0', 'true']).status !== 0) return;
  for (const core of [PROXY_CORE, LOAD_CORE])
    children.start(`awake-${core}`, ['chrt', '--idle', '0', 'sh', '-c', LOOP], {
      core,
      output: 'pipe',
    });
}
