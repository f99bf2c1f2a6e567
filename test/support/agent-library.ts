// The library of a deployment, as a worker loads it: here that of this repository.
import { type Library, loadLibrary } from '../../src/agent-worker/graphs/library.ts';

/** Found from this repository, as a worker finds it from the folder of a deployment. */
export const resolveHere = (specifier: string): string => import.meta.resolve(specifier);

export function loadTestLibrary(): Promise<Library> {
  return loadLibrary(resolveHere);
}
