// Whether the mounted files of a box are usable still: they are gone if somebody unmounted them, and read-only after an error of the
// disk below, which may be full. Pure.

/** In the mount namespace of the box host; `$1`: where the mounts of boxes lie. Prints `ID/NAME OPTIONS`. */
export const LIST_MOUNTS = `awk -v "prefix=$1/" 'index($5, prefix) == 1 { print substr($5, length(prefix) + 1), $NF }' /proc/self/mountinfo`;

const NAMES: readonly string[] = ['disk', 'snapshot', 'files', 'root'];
/** What the kernel shows of a file system that it closed for writes; the second from Linux 6.13 on. */
const READ_ONLY: readonly string[] = ['ro', 'emergency_ro', 'shutdown'];

/** By `ID/NAME`, the options of the file system. */
export function parseMounts(listed: string): ReadonlyMap<string, readonly string[]> {
  return new Map(
    listed.split('\n').flatMap((line) => {
      const [path = '', options] = line.split(' ');
      return options === undefined ? [] : [[path, options.split(',')] as const];
    }),
  );
}

/** For the users of the box; undefined: nothing is wrong. */
export function describeMounts(
  id: string,
  mounts: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  if (NAMES.some((name) => !mounts.has(`${id}/${name}`)))
    return 'The files of the box are not mounted any more';
  const options = mounts.get(`${id}/disk`) ?? [];
  return options.some((one) => READ_ONLY.includes(one))
    ? 'The file system of the box was closed after an error: the disk of the machine may be full'
    : undefined;
}
