// Whether this machine can isolate boxes. Tests that need it say why they did not run; continuous integration installs what
// they need and fails when they did not.
import { appendFileSync } from 'node:fs';
import { detectCapabilities } from '../../src/box-host/bubblewrap/capabilities.ts';

export const capabilities = await detectCapabilities();

const [obstacle] = capabilities.obstacles;

/** Undefined: boxes can be isolated as root, with an ext4 for each and limits by cgroups. */
export const missing: string | undefined =
  obstacle ??
  (capabilities.privilege === 'root'
    ? undefined
    : 'these tests make host users and mounts: run them as root') ??
  capabilities.warnings[0];

/** For a title: with the reason if the tests cannot run. */
export function titled(title: string): string {
  return missing === undefined ? title : `${title} (skipped: ${missing})`;
}

/** Continuous integration reads it. */
export function recordRun(name: 'bubblewrap' | 'bubblewrap-user'): void {
  const file = process.env['SALLYPORT_CLIENTS_RAN'];
  if (file !== undefined) appendFileSync(file, `${name}\n`);
}
