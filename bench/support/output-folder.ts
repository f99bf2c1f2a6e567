// The folders of --report and --profile. They are created and checked before anything is measured: an hour of figures must not
// end in a folder that cannot be written, and no file of the user is overwritten.
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from './usage-error.ts';

export const DEFAULT_FOLDER: string = join(import.meta.dirname, '..', '..', 'docs', 'benchmark');
export const RAW_FILE = 'raw.json';
export const PLOTS_FOLDER = 'plots';

/** Creates the folder of a report, or checks that a report of this benchmark is in it. */
export function prepareReportFolder(folder: string): void {
  prepareFolder('--output', folder);
  const names = readdirSync(folder);
  if (names.length === 0) return;
  if (!isOurs(join(folder, RAW_FILE)))
    throw new UsageError(
      `--output ${folder} has other files and no ${RAW_FILE} of this benchmark; choose an empty or a new folder`,
    );
  if (names.includes(PLOTS_FOLDER) && !statSync(join(folder, PLOTS_FOLDER)).isDirectory())
    throw new UsageError(
      `--output ${folder} has a file ${PLOTS_FOLDER}; a report needs a folder of that name`,
    );
}

/** Creates a folder if it does not exist, and checks that files can be written in it. */
export function prepareFolder(option: string, folder: string): void {
  const probe = join(folder, `.bench-${process.pid}`);
  try {
    createFolder(resolve(folder));
    writeFileSync(probe, '', { flag: 'wx' });
    rmSync(probe);
  } catch (error) {
    throw new UsageError(
      `${option} must be a folder that can be written, not ${folder}: ${(error as Error).message}`,
    );
  }
}

/** Level by level: the recursive mkdir of Node never ends for a folder below /proc. */
function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return;
  createFolder(dirname(folder));
  mkdirSync(folder);
}

function isOurs(file: string): boolean {
  try {
    const { command, ratios } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    return String(command).startsWith('npm run bench') && typeof ratios === 'object';
  } catch {
    return false;
  }
}
