// The runtime of this machine for requests that send it files. It is opened with the first of them, and stays open.
import { DomainError } from '../../../base/domain-error.ts';
import type { StartContext } from '../../module.ts';
import type { Runtime } from '../../runtime/contract.ts';
import { readMachineId } from '../../store/data-directory/machine-id.ts';
import { noteRuntime } from '../reconciliation/machine.ts';

export type Machine = { readonly runtime: Runtime; readonly machineId: string };

export type MachineLink = {
  /** Called when the process starts. */
  attach(context: StartContext): void;
  /** Throws `unavailable` where nothing on this machine runs boxes. */
  open(): Promise<Machine>;
  close(): Promise<void>;
};

export function createMachineLink(openRuntime: (context: StartContext) => Promise<Runtime>): MachineLink {
  let context: StartContext | undefined;
  let opening: Promise<Machine> | undefined;
  return {
    attach(given) {
      context = given;
    },
    open() {
      if (context === undefined)
        throw new DomainError('unavailable', 'This process has not started yet', 1_000);
      const { roles, config } = context;
      if (!roles.works) throw new DomainError('not_supported', NOT_HERE);
      const given = context;
      opening ??= (async () => {
        const machineId = await readMachineId(config.dataDirectory);
        const runtime = await openRuntime(given);
        // What removes files without a row begins with the row of the machine.
        await noteRuntime(given.store.db, machineId, runtime);
        return { machineId, runtime };
      })().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return opening;
    },
    async close() {
      const opened = await opening?.catch(() => undefined);
      await opened?.runtime.close();
    },
  };
}

const NOT_HERE =
  'The process that serves this request runs no sandboxes: send archives to one with the role "both", or use a directory';
