// Every row of the corpus, by the stage that plays it. A stage's own test plays its rows; this list is for what holds of
// them all: that they are many, that no two are the same, that no class was forgotten.
import type { AttackRow } from './row.ts';

export type StageRows = {
  readonly stage: string;
  readonly rows: readonly AttackRow<unknown, unknown>[];
};

export const corpus: readonly StageRows[] = [];
