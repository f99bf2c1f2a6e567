// What a box must not see of /usr of the host, as it is now: searched for when the box host starts, and again before a program starts
// after packages were installed or changed. Others see it at most until then, and only where the user of the box may read it.
import { stat } from 'node:fs/promises';
import { SingleFlight } from '../../base/single-flight.ts';
import { findHidden, type HiddenPath } from '../snapshots/base-snapshot.ts';

/** The data of package managers, and the directories that most packages write to. */
const WATCHED: readonly string[] = [
  ...['/var/lib/dpkg/status', '/var/lib/rpm', '/lib/apk/db/installed', '/var/lib/pacman/local'],
  ...['', '/bin', '/sbin', '/lib', '/lib64', '/libexec', '/share', '/games'].map((name) => `/usr${name}`),
  ...['', '/bin', '/sbin', '/lib', '/libexec', '/share', '/etc'].map((name) => `/usr/local${name}`),
];

export class HiddenPaths {
  readonly #find: () => Promise<readonly HiddenPath[]>;
  readonly #watched: readonly string[];
  readonly #searches = new SingleFlight<readonly HiddenPath[]>();
  #found: { readonly state: string; readonly paths: readonly HiddenPath[] } | undefined;

  constructor(
    find: () => Promise<readonly HiddenPath[]> = () => findHidden('/usr'),
    watched: readonly string[] = WATCHED,
  ) {
    this.#find = find;
    this.#watched = watched;
  }

  async current(): Promise<readonly HiddenPath[]> {
    // Before the search: what changes while it runs is searched for again.
    const state = await readState(this.#watched);
    if (this.#found?.state === state) return this.#found.paths;
    return this.#searches.run(state, async () => {
      const paths = await this.#find();
      this.#found = { state, paths };
      return paths;
    });
  }
}

/** When each was changed; of a file that is absent, that. */
async function readState(paths: readonly string[]): Promise<string> {
  const times = paths.map(async (path) => {
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    return found === undefined ? '-' : `${found.ino}:${found.mtimeNs}:${found.ctimeNs}`;
  });
  return (await Promise.all(times)).join(' ');
}
