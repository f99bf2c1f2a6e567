// What must hold of the exports after a storm: each has exactly the rows of its project, by day, in exactly the files that it names. Pure.

export type ExportedRun = {
  readonly status: string;
  /** `2026-11-20` */
  readonly day: string;
  readonly rowsWritten: number;
  /** Keys in the bucket. */
  readonly files: readonly string[];
};

export type StormExport = {
  readonly id: string;
  readonly status: string;
  readonly runs: readonly ExportedRun[];
};

export type Stored = {
  /** The ids in each Parquet file, by its key in the bucket. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly openUploads: readonly string[];
};

/** `source`: the ids of each day of the window. */
export function checkExports(
  exports: readonly StormExport[],
  source: ReadonlyMap<string, readonly string[]>,
  stored: Stored,
): readonly string[] {
  const named = new Set(exports.flatMap(({ runs }) => runs.flatMap(({ files }) => files)));
  return [
    ...exports.flatMap((one) =>
      checkExport(one, source, stored).map((error) => `export ${one.id}: ${error}`),
    ),
    ...[...stored.files.keys()].filter((key) => !named.has(key)).map((key) => `no run names the file ${key}`),
    ...stored.openUploads.map((key) => `an upload of ${key} was neither completed nor aborted`),
  ];
}

function checkExport(
  { status, runs }: StormExport,
  source: ReadonlyMap<string, readonly string[]>,
  { files }: Stored,
): readonly string[] {
  const days = runs.map(({ day }) => day).toSorted();
  const expected = [...source.keys()].toSorted();
  return [
    ...(status === 'COMPLETED' ? [] : [`it is ${status}`]),
    ...(days.join() === expected.join() ? [] : [`its runs are of ${days.join(', ')}`]),
    ...runs.flatMap((run) => checkRun(run, source.get(run.day) ?? [], files)),
  ];
}

function checkRun(
  { status, day, rowsWritten, files }: ExportedRun,
  source: readonly string[],
  stored: Stored['files'],
): readonly string[] {
  const missing = files.filter((key) => !stored.has(key));
  const ids = files.flatMap((key) => stored.get(key) ?? []);
  const isSame = ids.toSorted().join() === source.toSorted().join();
  return [
    ...(status === 'COMPLETED' ? [] : [`the run of ${day} is ${status}`]),
    ...missing.map((key) => `the run of ${day} names ${key}, which is not there`),
    ...(isSame
      ? []
      : [
          `the files of ${day} have ${ids.length} rows (${new Set(ids).size} different ones) of ${source.length}`,
        ]),
    ...(rowsWritten === source.length
      ? []
      : [`the run of ${day} says that it has written ${rowsWritten} rows`]),
  ];
}
