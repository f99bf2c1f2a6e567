// Ends workloads without namespaces of their own when this process is killed: a program ends with it, and what it has started would not.
// A shell waits for the end of its standard input, which is this process, and then kills what it was last given.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { systemEnvironment } from '../../box-host/command.ts';
import { END_OWN_PROCESSES, FIRST_WORKLOAD_USER } from '../users/user-processes.ts';

/** A host user of workloads alone, or the session of one program. */
export type Kept = { readonly kind: 'user' | 'session'; readonly id: number };

const SCRIPT = `
declare -A users sessions
while read -r verb kind id; do
  case "$verb $kind" in
    'add user') users[$id]=1 ;;
    'remove user') unset "users[$id]" ;;
    'add session') sessions[$id]=1 ;;
    'remove session') unset "sessions[$id]" ;;
  esac
done
endUser() {
  [ "$1" -ge ${FIRST_WORKLOAD_USER} ] || return
  setpriv --reuid "$1" --regid "$1" --clear-groups --inh-caps=-all -- /bin/sh -c '${END_OWN_PROCESSES}' sh "$1"
}
# Whatever forks meanwhile is found the next time.
endSessions() {
  local found=1 line pid rest round
  for ((round = 0; found && round < 50; round++)); do
    found=
    for path in /proc/[0-9]*; do
      { read -r line <"$path/stat"; } 2>/dev/null || continue
      pid=\${line%% *} rest=(\${line##*) })
      [ -n "\${sessions[\${rest[3]:-none}]}" ] && [ "\${rest[0]}" != Z ] && kill -s KILL "$pid" && found=1
    done
  done
}
for id in "\${!users[@]}"; do endUser "$id"; done
[ \${#sessions[@]} = 0 ] || endSessions
`;

export class Keeper {
  readonly #child: ChildProcess;
  /** A host user may have several workloads. */
  readonly #counts = new Map<string, number>();

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Rejects with an Error if bash cannot be run. */
  static async start(): Promise<Keeper> {
    const child = spawn('bash', ['-c', SCRIPT], {
      cwd: '/',
      env: systemEnvironment,
      stdio: ['pipe', 'ignore', 'ignore'],
      // Not in the session of this process, whose terminal may end all of it.
      detached: true,
    });
    child.stdin?.on('error', () => undefined);
    await once(child, 'spawn');
    child.on('error', () => undefined);
    return new Keeper(child);
  }

  add({ kind, id }: Kept): void {
    const name = `${kind} ${id}`;
    const count = this.#counts.get(name) ?? 0;
    this.#counts.set(name, count + 1);
    if (count === 0) this.#child.stdin?.write(`add ${name}\n`);
  }

  /** As often as it was added. */
  remove({ kind, id }: Kept): void {
    const name = `${kind} ${id}`;
    const count = this.#counts.get(name) ?? 0;
    this.#counts.set(name, count - 1);
    if (count > 1) return;
    this.#counts.delete(name);
    this.#child.stdin?.write(`remove ${name}\n`);
  }

  /** Kills what it still has. */
  async close(): Promise<void> {
    const ended =
      this.#child.exitCode === null && this.#child.signalCode === null
        ? once(this.#child, 'exit')
        : undefined;
    this.#child.stdin?.end();
    await ended;
  }
}
