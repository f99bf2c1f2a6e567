// What a revision may use, by its resource_spec: how many instances, and the processor and memory of each. Pure.
import type { ResourceSpec } from './deployment-rows.ts';

/** Of one machine: it runs the instances of a deployment side by side. */
export const MAX_SCALE = 4;

const DEFAULT_CPU = 1;
const DEFAULT_MEMORY_MB = 1024;
/** A limit that is left out, in terms of the request. */
const LIMIT_OF_REQUEST = 2;

export type DeploymentLimits = {
  readonly minScale: number;
  readonly maxScale: number;
  readonly limits: { readonly cpuMillicores: number; readonly memBytes: number };
};

export function limitsOf(spec: ResourceSpec | null | undefined): DeploymentLimits {
  const { min_scale, max_scale, cpu, cpu_limit, memory_mb, memory_limit_mb } = spec ?? {};
  const minScale = Math.min(Math.max(min_scale ?? 1, 1), MAX_SCALE);
  const maxScale = Math.min(Math.max(max_scale ?? minScale, minScale), MAX_SCALE);
  const cores = cpu_limit ?? (cpu ?? DEFAULT_CPU) * LIMIT_OF_REQUEST;
  const megabytes = memory_limit_mb ?? (memory_mb ?? DEFAULT_MEMORY_MB) * LIMIT_OF_REQUEST;
  const limits = { cpuMillicores: Math.round(cores * 1000), memBytes: megabytes * 1024 ** 2 };
  return { minScale, maxScale, limits };
}
