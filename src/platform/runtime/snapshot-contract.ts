// Snapshots of one machine: what its boxes can be made of.

export type ImportedSnapshot = { readonly bytes: number; readonly entries: number };

/** Functions reject with a RuntimeError: `invalid_snapshot`, `no_capacity`, `not_supported`, `unavailable`, `failed`. */
export type RuntimeSnapshots = {
  /** Idempotent; it takes as long as the files need. */
  importDirectory(
    id: string,
    source: {
      readonly directory: string;
      /** It must be below one of these. */
      readonly within: readonly string[];
      readonly maxBytes: number;
    },
    signal: AbortSignal,
  ): Promise<ImportedSnapshot>;
  /** Reads no faster than the files are written; rejects with the error of `archive` if that throws. Half of one is never kept. */
  importArchive(
    id: string,
    archive: AsyncIterable<Uint8Array>,
    options: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<ImportedSnapshot>;
  /** Of a snapshot that no box uses; also for one that is not there. */
  remove(id: string): Promise<void>;
  /** Without `base`. */
  list(): Promise<readonly { readonly id: string; readonly ageMs: number }[]>;
};
