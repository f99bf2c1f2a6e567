// Every fault that is injected, in the order of the catalogue's list, with those that were added to it.
import { responseFaults } from './response-faults.ts';
import { callbackFaults } from './callback-faults.ts';
import { certificateFaults } from './certificate-faults.ts';
import { connectionFaults } from './connection-faults.ts';
import { endingFaults } from './ending-faults.ts';
import type { ChaosRow } from './fault.ts';
import { localFaults } from './local-faults.ts';
import { nameFaults } from './name-faults.ts';
import { recordFaults } from './record-faults.ts';

export const chaosRows: readonly ChaosRow[] = [
  ...connectionFaults,
  ...responseFaults,
  ...certificateFaults,
  ...nameFaults,
  ...callbackFaults,
  ...localFaults,
  ...recordFaults,
  ...endingFaults,
];
