// The command that runs a program within open namespaces. The descriptors are passed to nsenter, and closed before the
// program starts, with every other one that it was not meant to have: it must not find a way to the host in them. Node passes
// on what it inherited itself from whoever started it.
import type { OpenNamespaces } from './open-namespace.ts';

export type Entry = {
  readonly command: readonly string[];
  /** What the child has from `firstDescriptor` on. */
  readonly descriptors: readonly number[];
};

/** Of a script of bash, because other shells close descriptors of one digit only: closes those from `$1` on, and drops `$1`. */
export const CLOSE_DESCRIPTORS = `
for path in /proc/self/fd/*; do
  number=\${path##*/}
  [ "$number" -lt "$1" ] || eval "exec $number>&-"
done
shift
`;

const OPTIONS = { user: '--user', mnt: '--mount', net: '--net' } as const;
/** `prepare`: shell commands that run within the namespaces, before the program. */
export function enterNamespaces(
  namespaces: OpenNamespaces,
  command: readonly string[],
  {
    firstDescriptor = 3,
    prepare = '',
  }: { readonly firstDescriptor?: number; readonly prepare?: string } = {},
): Entry {
  const entered = (['user', 'mnt', 'net'] as const).flatMap((kind) => {
    const descriptor = namespaces[kind];
    return descriptor === undefined ? [] : [{ option: OPTIONS[kind], descriptor }];
  });
  const numbers = entered.map((_, index) => firstDescriptor + index);
  return {
    command: [
      'nsenter',
      ...entered.map(({ option }, index) => `${option}=/proc/self/fd/${numbers[index]}`),
      // This user is root there already, and may not set groups.
      ...(namespaces.user === undefined ? [] : ['--preserve-credentials']),
      ...[
        '--',
        'bash',
        '-c',
        `${CLOSE_DESCRIPTORS}${prepare}\nexec "$@"`,
        'bash',
        String(firstDescriptor),
        ...command,
      ],
    ],
    descriptors: entered.map(({ descriptor }) => descriptor),
  };
}
