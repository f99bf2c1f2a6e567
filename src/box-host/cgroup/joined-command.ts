// The command of a program that is within its limits from its first instruction on.

// In its groups before anything else. The memory of the machine is worth more than that of one program.
const JOIN = `
while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done
shift
echo 500 >/proc/self/oom_score_adj
exec "$@"`;

/** `files`: see `Cgroups.entryFiles`. */
export function joinedCommand(files: readonly string[], command: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', JOIN, 'sh', ...files, '--', ...command];
}
