// Loaded before the tests of each file: outside the full run every property without a seed of its own has the same one,
// which fast-check prints when the property fails.
import * as fc from 'fast-check';
import { FIXED_SEED, isFullRun } from './run-size.ts';

if (!isFullRun) fc.configureGlobal({ seed: FIXED_SEED });
