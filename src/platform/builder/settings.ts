// The settings of builds, with the values that an operator who sets none has.
import { availableParallelism } from 'node:os';

export type BuilderSettings = {
  /** Builds of this machine that run at once. */
  readonly concurrency: number;
  /** Of one build, all its commands together. */
  readonly timeoutMs: number;
  /** Of one command, with all that it starts. */
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Of all installed packages that are kept. */
  readonly cacheBytes: number;
  /** Of builds of one workspace; those that run, or will, count and are kept whatever they take. */
  readonly keptBytes: number;
  /** What builds may reach besides the registries: destinations as in an access control. */
  readonly allowHosts: readonly string[];
};

const GIB = 1024 ** 3;

export const defaultBuilderSettings: BuilderSettings = {
  concurrency: availableParallelism(),
  timeoutMs: 15 * 60_000,
  memoryBytes: 2 * GIB,
  diskBytes: 4 * GIB,
  cacheBytes: 8 * GIB,
  keptBytes: 32 * GIB,
  allowHosts: [],
};
