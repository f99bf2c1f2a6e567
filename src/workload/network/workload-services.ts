// A service of this process in the network namespace of one workload.
import type { NetworkPlace } from '../isolation/isolation.ts';
import type { WorkloadService } from '../workload.ts';

/** Before anything of the workload runs, which could take its port. Returns how it is closed. */
export async function openService(
  service: WorkloadService,
  place: Pick<NetworkPlace, 'openPort'>,
): Promise<() => Promise<void>> {
  if (place.openPort === undefined) throw new TypeError('services: there is no network namespace here');
  const { handle, close } = await place.openPort(service.port);
  try {
    const opened = await service.listen(handle);
    return () => opened.close();
  } catch (error) {
    close();
    throw error;
  }
}
