// The operator's rules and secrets from their files: at the start, on SIGHUP, and when the files have changed. What is rejected, or
// cannot be read, changes nothing.
import { WorkQueue } from '../../base/work-queue.ts';
import type { Config } from '../../sidecar/config.ts';
import type { FileWatch } from '../../sidecar/reload/file-watch.ts';
import type { WorkspaceSecrets } from '../../sidecar/sandboxes/workspace-secrets.ts';
import type { Sidecar } from '../../sidecar/sidecar.ts';
import { readDocument } from '../document.ts';
import { reportApplied } from '../settings.ts';

/** Applies the file, or without one the active document, with the given secrets. False: rejected, and reported. */
export async function applyFiles(
  sidecar: Sidecar,
  { proxyConfigFile: file }: Config,
  { lookup }: WorkspaceSecrets,
  rejection: string = 'proxy_config rejected',
): Promise<boolean> {
  const applied =
    file === undefined ? sidecar.reapply(lookup) : sidecar.applyProxyConfig(await readDocument(file), lookup);
  if (!applied.ok) sidecar.log.error({ file, issues: applied.issues }, rejection);
  return reportApplied(sidecar, applied, file);
}

export type Reloads = {
  /** Never rejects. One reload at a time. */
  run(): Promise<void>;
  /** Reloads whenever the watched files have changed. */
  watch(): void;
};

export function createReloads(
  sidecar: Sidecar,
  config: Config,
  {
    loaded,
    files,
    refresh,
  }: {
    readonly loaded: WorkspaceSecrets;
    readonly files: FileWatch | undefined;
    /** What else is read again; an error is a failed reload. */
    refresh(): Promise<void>;
  },
): Reloads {
  const queue = new WorkQueue();
  let secrets = loaded;
  const reload = async (): Promise<boolean> => {
    try {
      const reloaded = secrets.reload();
      if (!(await applyFiles(sidecar, config, reloaded, `proxy_config rejected; ${UNCHANGED}`))) return false;
      secrets = reloaded;
      await refresh();
      return true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      sidecar.log.error({ reason }, `reload failed; ${UNCHANGED}`);
      return false;
    }
  };
  const run = (): Promise<void> => queue.run(async () => sidecar.noteReload(await reload()));
  return {
    run() {
      files?.mark();
      return run();
    },
    watch: () => files?.start(run),
  };
}

const UNCHANGED = 'the current configuration stays active';
