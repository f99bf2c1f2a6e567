// How much a run of an export holds at once, how large its files become, and how long it waits for the storage.

export type ExportLimits = {
  /** Of a page of runs, and of the payloads of one as they are stored. */
  readonly pageRows: number;
  readonly pageBytes: number;
  /** Of a group of rows, before it is compressed: one with a larger row has that row alone. */
  readonly groupRows: number;
  readonly groupBytes: number;
  /** Of the payloads of one run, without compression: they are held at once. */
  readonly runBytes: number;
  /** A file ends with the group of rows that reaches one of them. */
  readonly fileRows: number;
  readonly fileBytes: number;
  /** How long the service may take for a connection, and without a byte of a request or of its response. */
  readonly silenceMs: number;
};

const MIB = 1024 * 1024;

export const standardLimits: ExportLimits = {
  ...{ pageRows: 2_000, pageBytes: 8 * MIB },
  ...{ groupRows: 2_000, groupBytes: 16 * MIB },
  runBytes: 256 * MIB,
  ...{ fileRows: 500_000, fileBytes: 256 * MIB },
  silenceMs: 30_000,
};
